// Makes clients that are not connected yet, from the options of the store. These clients neither repeat calls nor reconnect by
// themselves: only a caller may repeat a call, and link.ts reconnects and reports why it cannot.
import { letReplicasRedirect } from './clients.js';
import { type Client, type ClusterClient, loadDriver, type Options } from './driver.js';
import type { CheckedOptions } from './options.js';
import { parseServerUrl } from '../../server-url.js';

/** Options that belong to a cluster and not to the connections to its nodes. */
const OF_CLUSTERS = ['natMap', 'dnsLookup', 'useSRVRecords', 'resolveSrv', 'maxRedirections', 'slotsRefreshInterval'] as const;

/** How long ioredis waits for the end of a socket, in ms. If the socket never connected, it waits in vain and keeps the process alive. */
const DISCONNECT_MS = 100;

export class Dialer {
  readonly #options: CheckedOptions;
  /** The client that others are duplicated from. It is never connected itself. */
  #template: Client | undefined;

  constructor(options: CheckedOptions) {
    this.#options = options;
  }

  /** The address of Redis for messages, without user and password. */
  get address(): string {
    return this.#template === undefined ? 'the given address' : addressOf(this.#template);
  }

  /** Makes a client. `at`: a known address of the host, to skip a DNS lookup, which may take long (a busy thread pool). */
  async dial(at?: string): Promise<Client> {
    this.#template ??= await this.#makeTemplate();
    if (this.#template.isCluster) {
      const cluster = this.#template.duplicate([], this.#clusterOptions({}));
      letReplicasRedirect(cluster);
      return cluster;
    }
    const { host, tls, sentinels } = this.#template.options;
    const known =
      at === undefined || sentinels ? {} : { host: at, ...(tls ? { tls: { servername: host, ...(tls as Options) } } : {}) };
    return this.#template.duplicate({ ...this.#connectionOptions(), ...known });
  }

  /** Switches to cluster clients, after link.ts has found that the server is a node of a cluster. */
  async joinCluster(): Promise<void> {
    const { host, port, ...rest } = (this.#template as Client).options;
    this.#template = await this.#makeCluster([{ host, port }], rest);
  }

  /** Makes a client for another connection to the same server, or to a random node of the same cluster. */
  beside(client: Client): Client {
    if (!client.isCluster) return client.duplicate(this.#connectionOptions());
    const nodes = (client as ClusterClient).nodes('all');
    const node = nodes[Math.floor(Math.random() * nodes.length)];
    if (node === undefined) throw new Error('None of startup nodes is available');
    return node.duplicate(this.#connectionOptions());
  }

  async #makeTemplate(): Promise<Client> {
    const { client, cluster, url, driver } = this.#options;
    if (client !== undefined) return client as Client;
    if (cluster !== undefined) return this.#makeCluster(cluster, driver);
    return (await loadDriver()).connection(url, { ...driver, lazyConnect: true });
  }

  async #makeCluster(nodes: readonly unknown[], options: Options): Promise<Client> {
    return (await loadDriver()).cluster([...nodes], this.#clusterOptions(options));
  }

  #connectionOptions(): Options {
    return {
      lazyConnect: true,
      retryStrategy: null,
      sentinelRetryStrategy: null,
      reconnectOnError: null,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      // server.ts checks the server itself, and checks more than whether it is loading.
      enableReadyCheck: false,
      enableAutoPipelining: false,
      autoResubscribe: false,
      autoResendUnfulfilledCommands: false,
      // The engine reads replies in these formats.
      stringNumbers: false,
      replyMapping: 'legacy',
      readOnly: false,
      monitor: false,
      commandTimeout: undefined,
      socketTimeout: undefined,
      connectTimeout: this.#options.connectTimeout,
      disconnectTimeout: DISCONNECT_MS,
    };
  }

  #clusterOptions(given: Options): Options {
    const { commandTimeout, connectTimeout } = this.#options;
    const ofNodes = { ...given };
    const ofCluster: Options = {};
    for (const name of OF_CLUSTERS) {
      if (name in ofNodes) ofCluster[name] = ofNodes[name];
      delete ofNodes[name];
    }
    return {
      ...ofCluster,
      lazyConnect: true,
      clusterRetryStrategy: null,
      // 0: ioredis must not resend a call that may have been carried out; only its caller may repeat it.
      retryDelayOnFailover: 0,
      slotsRefreshTimeout: connectTimeout,
      // The first call for a node connects to it. The calls that follow at the same moment wait in this queue.
      enableOfflineQueue: true,
      enableAutoPipelining: false,
      scaleReads: 'master',
      redisOptions: {
        ...ofNodes,
        ...this.#connectionOptions(),
        db: 0,
        commandTimeout,
        socketTimeout: commandTimeout,
      },
    };
  }
}

function nodeOf(node: unknown): string {
  if (typeof node === 'string') return parseServerUrl(node)?.host ?? 'the given nodes';
  if (typeof node !== 'object' || node === null) return String(node);
  const { host, port } = node as { host?: string; port?: number };
  return `${host}:${port}`;
}

function addressOf(client: Client): string {
  const { host, port, path, sentinels, name } = client.options;
  if (client.isCluster) {
    const [first] = (client as unknown as { startupNodes?: unknown[] }).startupNodes ?? [];
    return `the cluster of ${nodeOf(first)}`;
  }
  if (Array.isArray(sentinels)) return `the primary ${String(name)} of the sentinels`;
  return typeof path === 'string' ? path : `${String(host)}:${String(port)}`;
}
