export interface Server {
  call<T>(fn: string, values: unknown[]): Promise<T>;
}
