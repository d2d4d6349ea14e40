// Who owns which job, and how each of them ended, from the replies of the store; it judges every grant, sweep and owner's write.

const REFUSED_BY_CHILDREN = new Set(['pending', 'unsuccessful']);

export class JobBook {
  /** Job ids that were acknowledged to their producer. */
  acknowledged = new Set();
  /** Job ids that this store has given out. */
  known = new Set();
  /** The queue of each job. */
  queues = new Map();
  owners = new Map();
  finished = new Map();
  /** Jobs that their finish has removed. */
  removed = new Set();
  /** How many jobs of a group may be active; undefined if the run sets no limit. */
  groupConcurrency;
  /** Tokens under which a run has come to its end. */
  ended = new Set();
  stalls = new Map();
  /** Jobs that were cancelled while they ran. */
  #cancelled = new Set();
  #world;
  #time;
  #sessions;
  #fences;
  #history;
  #onGrant;
  #onCancel;
  #answered = new Map();
  #hasTakenOver = false;
  #revoked = new Set();
  /** Jobs with parents. */
  #arriving = new Set();

  constructor({ world, time, sessions, fences, history, onGrant, onCancel }) {
    this.#world = world;
    this.#time = time;
    this.#sessions = sessions;
    this.#fences = fences;
    this.#history = history;
    this.#onGrant = onGrant;
    this.#onCancel = onCancel;
  }

  /** What was finished on the store before, and is not here, is still held here: a session may hold more than it has slots for. */
  takeOver(before) {
    this.#hasTakenOver = true;
    this.acknowledged = new Set([...before.acknowledged].filter((id) => this.isKept(id)));
  }

  /** Of what was acknowledged before a failover. A child of a flow may have been on its way to the server that has lost it. */
  isKept(id) {
    return this.known.has(id) && !this.#arriving.has(id);
  }

  isRevoked(token) {
    return this.#revoked.has(token);
  }

  claimed(queue, { session, timedMs }, { jobs }) {
    for (const { id, token, fence, group } of jobs) {
      if (!this.#fences.isKnown(token)) this.#granted(id, { queue, token, fence, session, timedMs, group });
      else if (this.owners.get(id)?.token !== token) {
        this.#violate('one lock per job', id, `${id} was handed out again under ${token}, which had ended`);
      }
    }
    const { process } = this.#sessions.get(session) ?? {};
    const held = [...this.owners].filter(([, owner]) => owner.session === session && owner.isRefused !== true);
    if (!this.#hasTakenOver && process !== undefined && held.length > process.mostJobs) {
      this.#violate('slots are kept', held.at(-1)?.[0], `${session} holds ${held.length} jobs and may hold ${process.mostJobs}`);
    }
  }

  #granted(id, { queue, token, fence, session, timedMs, group }) {
    const before = this.owners.get(id);
    this.#history.note('store', `${id} is granted to ${session} (fence ${fence})`, { jobs: [id], sessions: [session] });
    if (before !== undefined)
      this.#violate('one lock per job', id, `${id} was granted to ${session} while ${before.session} had it`);
    this.queues.set(id, queue);
    if (this.finished.get(id)?.isCancelled)
      this.#violate('a cancelled job never runs again', id, `${id} was granted after it had been cancelled`);
    if (this.finished.has(id)) this.#violate('a finish is final', id, `${id} was granted after it had finished`);
    this.#fences.granted({ job: id }, token, fence, queue);
    const timed = timedMs !== undefined;
    this.owners.set(id, { token, fence, session, group, timed, endsAt: timed ? this.#time.after(timedMs) : 0 });
    this.#judgeGroup(id, group);
    this.#onGrant(id, token);
  }

  #judgeGroup(id, group) {
    if (group === undefined || this.groupConcurrency === undefined) return;
    const active = [...this.owners.values()].filter((owner) => owner.group === group).length;
    if (active > this.groupConcurrency)
      this.#violate('no more active than the group allows', id, `${id} is the job number ${active} of ${group} that is active`);
  }

  /** Judges what owners wrote; answers the ids of the jobs that must not have changed. */
  settled(outcomes, call, results) {
    if (this.#isRepeat(call, outcomes[0]?.jobId, results)) return outcomes.map(({ jobId }) => jobId);
    const moved = new Set(
      outcomes.filter((outcome, index) => this.#settledOne(outcome, results[index])).map(({ jobId }) => jobId),
    );
    return outcomes.map(({ jobId }) => jobId).filter((id) => !moved.has(id));
  }

  /** True: the store has answered this call before. */
  added(queue, jobs, call, replies) {
    replies.forEach(({ id }, index) => {
      this.known.add(id);
      this.queues.set(id, jobs[index].queue ?? queue);
      if (jobs[index].parents !== undefined) this.#arriving.add(id);
    });
    return this.#isRepeat(call, replies[0]?.id, replies);
  }

  /** A call that was answered before must be answered as it was. */
  #isRepeat(call, job, replies) {
    if (call === undefined) return false;
    const key = `${call.caller} ${call.seq}`;
    const answer = JSON.stringify(replies);
    const first = this.#answered.get(key);
    if (first === undefined) this.#answered.set(key, answer);
    else if (first !== answer)
      this.#violate('a repeat changes nothing', job, `call ${key} was answered ${first} and then ${answer}`);
    return first !== undefined;
  }

  /** True: it was the owner, and the job has moved. */
  #settledOne({ kind, jobId, token, keep, step }, result) {
    this.#history.note('store', `${jobId} ${kind} by ${token}: ${result}`, { jobs: [jobId] });
    const owner = this.owners.get(jobId);
    // The children of a job refuse its outcome: the owner keeps its lock, and its run is over.
    if (REFUSED_BY_CHILDREN.has(result) && owner?.token === token) {
      owner.isRefused = true;
      return false;
    }
    // What the job would wait for has come: its run goes on.
    if (result === 'ready' && owner?.token === token) return false;
    const isOwner = this.#judge(jobId, token, result, this.#isRepeatedFinish(kind, jobId, token));
    if (!isOwner) return false;
    if (kind === 'release' && this.ended.has(token) && !this.#hasTakenOver) {
      this.#violate('an end is not given up', jobId, `${jobId} was given back by ${token}, whose run had ended`);
    }
    this.owners.delete(jobId);
    if (step !== undefined) this.stalls.set(jobId, 0);
    if (kind === 'completed' || kind === 'failed') this.#finished(jobId, { kind, token });
    else this.#waitsAgain(jobId);
    if (kind === 'completed' && keep?.count === 0) this.removed.add(jobId);
    return true;
  }

  #isRepeatedFinish(kind, jobId, token) {
    const finish = this.finished.get(jobId);
    return finish?.token === token && finish.kind === kind;
  }

  written({ kind, jobId, token, name }, { status }) {
    if (kind === 'step') this.#history.note('store', `${jobId} ${name} by ${token ?? 'a process'}: ${status}`, { jobs: [jobId] });
    if (token === undefined) return true;
    const isOwner = this.#judge(jobId, token, status, false);
    // A step is progress.
    if (isOwner && kind === 'step') this.stalls.set(jobId, 0);
    return isOwner;
  }

  extended({ jobId, token, durationMs, alone }, status) {
    const isOwner = this.#judge(jobId, token, status, false);
    const owner = this.owners.get(jobId);
    if (isOwner) owner.endsAt = this.#time.after(durationMs);
    if (isOwner && alone) owner.timed = true;
    return isOwner;
  }

  #judge(jobId, token, status, mayRepeat) {
    const isOwner = this.owners.get(jobId)?.token === token;
    if (status === 'done' && !isOwner && !mayRepeat) {
      this.#violate('no stale write', jobId, `${token} no longer owns ${jobId}, and its write was carried out`);
    }
    if (status !== 'done' && isOwner) {
      this.#violate('the owner is heard', jobId, `${token} owns ${jobId}, and its write was answered '${status}'`);
    }
    return isOwner;
  }

  swept({ stalled, failed }) {
    const isFailed = new Set(failed);
    for (const id of [...stalled, ...failed]) {
      const owner = this.owners.get(id);
      if (owner === undefined || this.#isAlive(owner)) {
        const why = owner === undefined ? 'nobody owned it' : `${owner.session} was alive`;
        this.#violate('only the dead are swept', id, `${id} was swept although ${why}`);
      }
      this.#charge(id, owner, isFailed.has(id));
    }
  }

  #isAlive({ session, timed, endsAt }) {
    return endsAt > this.#time.now() || (!timed && this.#sessions.isAlive(session));
  }

  /** Everything that the session holds goes back at once. */
  closed(session, how) {
    for (const [id, owner] of [...this.owners]) {
      if (owner.session !== session) continue;
      if (how === 'crashed') this.#charge(id, owner, undefined);
      else {
        this.owners.delete(id);
        this.#waitsAgain(id);
      }
    }
  }

  #charge(id, owner, isFailed) {
    const stalls = (this.stalls.get(id) ?? 0) + 1;
    this.stalls.set(id, stalls);
    this.owners.delete(id);
    const { maxStalls = 0 } = this.#sessions.get(owner?.session) ?? {};
    this.#history.note('store', `${id} stalled (${stalls} of ${maxStalls})`, { jobs: [id] });
    const over = stalls > maxStalls || this.#cancelled.has(id);
    if (isFailed !== undefined && isFailed !== over) {
      this.#violate('stalls are counted', id, `${id} stalled ${stalls} times of ${maxStalls}, failed: ${isFailed}`);
    }
    if (over) this.#finished(id, { kind: 'failed', token: undefined });
  }

  revoked(ids, changed) {
    ids.forEach((id) => {
      const owner = this.owners.get(id);
      if (changed.includes(id) !== (owner !== undefined))
        this.#violate('one lock per job', id, `revoking ${id} answered ${changed.includes(id)}`);
      if (owner === undefined) return;
      this.#history.note('store', `${id} is taken away from ${owner.session}`, { jobs: [id] });
      this.#revoked.add(owner.token);
      this.owners.delete(id);
      this.#waitsAgain(id);
    });
  }

  /** By their ids, or all that match. */
  cancelled(target, changed) {
    for (const id of changed) {
      this.#history.note('store', `${id} is cancelled`, { jobs: [id] });
      if (this.finished.has(id)) this.#violate('a finish is final', id, `${id} was cancelled after it had finished`);
      const owner = this.owners.get(id);
      const isNew = !this.#cancelled.has(id);
      this.#cancelled.add(id);
      if (owner === undefined) this.#finished(id, { kind: 'failed', token: undefined });
      else if (isNew) this.#onCancel(owner.token);
    }
    if (!Array.isArray(target)) return;
    for (const id of target) {
      if (this.known.has(id) && !this.finished.has(id) && !changed.includes(id))
        this.#violate('a cancelled job ends', id, `${id} has not ended, and its cancel was refused`);
    }
  }

  /** By hand. */
  retried(id) {
    this.#history.note('store', `${id} is retried by hand`, { jobs: [id] });
    this.finished.delete(id);
  }

  /** A job that leaves its owner without an end: if it was cancelled, it has failed. */
  #waitsAgain(id) {
    if (this.#cancelled.has(id)) this.#finished(id, { kind: 'failed', token: undefined });
  }

  #finished(id, finish) {
    this.finished.set(id, { ...finish, isCancelled: this.#cancelled.delete(id) });
  }

  #violate(invariant, job, text) {
    this.#world.violate({ invariant, text, job });
  }
}
