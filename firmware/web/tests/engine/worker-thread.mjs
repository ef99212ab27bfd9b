/* What a worker of node needs to run the script of a worker of browsers, which workerData names. */
import { webcrypto } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

globalThis.self = globalThis;
globalThis.crypto ??= webcrypto; // node 18 has it nowhere else
self.postMessage = (message) => parentPort.postMessage(message);
if (workerData.before) {
    await import(workerData.before);
}
await import(workerData.script);
parentPort.on('message', (data) => self.onmessage({ data }));
