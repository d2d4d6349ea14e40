import { runtimeSuite } from './suite.js';

runtimeSuite('Bun');
