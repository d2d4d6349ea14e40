// Loaded with --import into a process, and by Node into its threads: Date is SHIFTED_DATE_MS ahead. Where libfaketime is missing.
const shift = Number(process.env.SHIFTED_DATE_MS);
const RealDate = Date;
const now = () => RealDate.now() + shift;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
});
