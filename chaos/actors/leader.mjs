import { endWith } from './actor.mjs';
import { startLeading } from './leading.mjs';

endWith(startLeading());
