import { testManuals } from '../support/manuals.js';

testManuals('sqlite');
