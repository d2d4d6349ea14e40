export { HoldfastError, ERROR_CODES, type ErrorCode } from './errors.js';
