// Cuts a bulk into parcels that fit into one call to the store. A bulk that fits is never cut, so it is added as a whole or not at all.
import type { NewJob } from '../job/record.js';
import { MAX_BYTES, sizeOf } from './add-batcher.js';

/** `most`: the number of jobs in a parcel. */
export function parcelsOf(jobs: NewJob[], most: number): NewJob[][] {
  const parcels: NewJob[][] = [];
  let parcel: NewJob[] = [];
  let size = 0;
  for (const job of jobs) {
    const more = sizeOf(job);
    if (parcel.length > 0 && (parcel.length === most || size + more > MAX_BYTES)) {
      parcels.push(parcel);
      parcel = [];
      size = 0;
    }
    parcel.push(job);
    size += more;
  }
  if (parcel.length > 0) parcels.push(parcel);
  return parcels;
}
