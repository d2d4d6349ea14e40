import { testManuals } from '../support/processes/manuals.js';

testManuals('sqlite');
