// Advice for a TLS certificate that this process cannot verify: what is wrong with it, and which driver option helps.

/** Error codes of Node and OpenSSL, by cause. */
const ADVICE: Record<'authority' | 'name' | 'time', readonly string[]> = {
  authority: [
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'CERT_SIGNATURE_FAILURE',
    'CERT_UNTRUSTED',
    'INVALID_CA',
  ],
  name: ['ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH'],
  time: ['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'],
};

/** Returns undefined if the error is not about a certificate. `option`: the driver's option for TLS settings. */
export function certificateAdvice(code: string | undefined, option: 'tls' | 'ssl'): string | undefined {
  if (code === undefined) return undefined;
  const off = `${option}: { rejectUnauthorized: false } checks nothing: for tests alone`;
  if (ADVICE.authority.includes(code)) {
    const ca = `${option}: { ca: readFileSync('ca.pem') }`;
    return `no authority that this process trusts has signed it. Pass the certificate of its authority as ${ca}, or name its file in NODE_EXTRA_CA_CERTS; ${off}`;
  }
  if (ADVICE.name.includes(code)) {
    return `it was made for another name. Connect by that name, or pass it as ${option}: { servername }; ${off}`;
  }
  if (ADVICE.time.includes(code))
    return `it has expired, or is not valid yet. Renew it, or check the clock of this machine; ${off}`;
  return undefined;
}
