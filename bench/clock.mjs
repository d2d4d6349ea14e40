/** The monotonic clock in ms, which is one for all processes of a host. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;
