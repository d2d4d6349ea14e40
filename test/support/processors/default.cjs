// What compilers make of `export default`.
Object.defineProperty(exports, '__esModule', { value: true });
exports.default = async () => 'a default in CommonJS';
