import { runtimeSuite } from './suite.js';

runtimeSuite('Deno');
