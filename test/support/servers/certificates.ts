// Certificates for servers of tests: an authority, a certificate of it for a name that is not ours and for our address, and one for clients.
import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes ca.pem, server.pem, server.key, client.pem and client.key in `folder`. */
export function makeCertificates(folder: string): void {
  const openssl = (...args: string[]): unknown => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Test authority');
  writeFileSync(join(folder, 'names'), 'subjectAltName=DNS:jobs.internal,IP:127.0.0.1\n');
  const sign = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names', '-days', '2'];
  for (const [name, subject] of [
    ['server', '/CN=jobs.internal'],
    ['client', '/CN=postgres'],
  ] as const) {
    openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject);
    openssl('x509', '-req', '-in', `${name}.csr`, ...sign, '-out', `${name}.pem`);
  }
  chmodSync(folder, 0o755);
  chmodSync(join(folder, 'server.key'), 0o600);
}
