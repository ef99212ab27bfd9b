/* A program for a Chip that is a virtual board: what the chip's port carries goes over its WebSocket. */
import { connectWebSocket } from './ws-client.mjs';

/**
 * @param {string} address of a virtual board, ws://…
 * @returns {{connect: (send: (bytes: Uint8Array) => void) => {write(bytes: Uint8Array): void, close(): void}}}
 */
export function linked(address) {
    return {
        connect(send) {
            const wire = connectWebSocket(address, send);
            return {
                write: (bytes) => { wire.then((line) => line.write(bytes)); },
                close: () => { wire.then((line) => line.close()); },
            };
        },
    };
}
