import { runtimeSuite } from './suite.js';

runtimeSuite('Node 20');
