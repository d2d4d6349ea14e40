// The number of arguments says nothing: the third one is read here as well.
module.exports = async (job, ...rest) => [job.name, rest.length, rest[1] instanceof AbortSignal];
