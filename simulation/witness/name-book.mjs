// Who holds which name, leadership among them.

export class NameBook {
  holders = new Map();
  #world;
  #sessions;
  #fences;
  #history;
  #onGrant;

  constructor({ world, sessions, fences, history, onGrant }) {
    this.#world = world;
    this.#sessions = sessions;
    this.#fences = fences;
    this.#history = history;
    this.#onGrant = onGrant;
  }

  asked({ name, token, session }, { status, fence }) {
    if (status !== 'held') return;
    const holder = this.holders.get(name);
    if (holder?.token === token) return;
    this.#history.note('store', `"${name}" is granted to ${session} as ${token} (fence ${fence})`, {
      names: [name],
      sessions: [session],
    });
    if (holder !== undefined && this.#sessions.isAlive(holder.session)) {
      const text = `"${name}" was granted to ${session} while ${holder.session} held it`;
      this.#world.violate({ invariant: 'one holder per name', text, name });
    }
    // Whoever takes it from an expired session ends that session.
    if (holder !== undefined) this.#sessions.end(holder.session);
    this.#fences.granted({ name }, token, fence);
    this.holders.set(name, { token, fence, session });
    this.#onGrant(name, token);
  }

  letGo({ name, token }, freed) {
    if (this.holders.get(name)?.token !== token) return;
    if (!freed)
      this.#world.violate({ invariant: 'the owner is heard', text: `${token} held "${name}", and was not heard`, name });
    this.#history.note('store', `"${name}" is let go of by ${token}`, { names: [name] });
    this.holders.delete(name);
  }

  sessionEnded(session) {
    for (const [name, holder] of [...this.holders]) if (holder.session === session) this.holders.delete(name);
  }
}
