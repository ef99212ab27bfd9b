/* The virtual board, over a WebSocket. */
import { Board } from './board.js';
import { connectSocket, ownMachine, socketAddress } from './socket.js';
import { troubleOf } from './trouble.js';
import { LineWay } from './way.js';

export class VirtualWay extends LineWay {
    constructor(models) {
        super('virtual', 'the virtual board', models);
    }

    /** Why this page cannot; null when it can. @returns {import('./trouble.js').Trouble | null} */
    get missing() {
        try {
            ownMachine();
            return null;
        } catch (error) {
            return troubleOf(error);
        }
    }

    /** @param {string} typed an address */
    async connect(typed) {
        await this.connectBy(async (talk) => {
            ownMachine();
            return Board.open(await connectSocket(socketAddress(typed), talk), talk);
        });
    }
}
