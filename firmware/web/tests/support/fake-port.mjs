/*
 * A SerialPort as Web Serial has it, for tests. It needs nothing of its module, so that a test can put its source into a
 * page too.
 */
export class FakePort {
    /**
     * @param {object} device at the other end: receive(bytes), setSignals(signals), and it calls send(bytes), which is set here
     * @param {{usbVendorId?: number, usbProductId?: number}} [ids]
     */
    constructor(device, ids = { usbVendorId: 0x303a, usbProductId: 0x1001 }) {
        this.device = device;
        this.ids = ids;
        this.readable = null;
        this.writable = null;
        this.opened = 0;
        /** Another program has the port. */
        this.busy = false;
        /** The cable is out. */
        this.lost = false;
        device.send = (bytes) => this.controller?.enqueue(bytes);
    }

    getInfo() {
        return this.ids;
    }

    async open({ baudRate }) {
        if (this.readable !== null) {
            throw new DOMException('The port is already open.', 'InvalidStateError');
        }
        if (this.busy || this.lost || !(baudRate > 0)) {
            throw new DOMException('Failed to open serial port.', 'NetworkError');
        }
        this.opened++;
        this.#newReadable();
        this.writable = new WritableStream({
            write: async (bytes) => {
                if (this.lost) {
                    throw new DOMException('The device has been lost.', 'NetworkError');
                }
                await this.device.receive(new Uint8Array(bytes));
            },
        });
        await this.device.opened?.();
    }

    #newReadable() {
        this.readable = new ReadableStream({ start: (controller) => { this.controller = controller; } });
    }

    async close() {
        if (this.readable === null) {
            throw new DOMException('The port is already closed.', 'InvalidStateError');
        }
        if (this.readable.locked || this.writable.locked) {
            throw new TypeError('Cannot close a locked stream.');
        }
        this.readable = null;
        this.writable = null;
        this.controller = null;
        await this.device.closed?.();
    }

    async setSignals(signals) {
        if (this.readable === null || this.lost) {
            throw new DOMException('The port is closed.', 'InvalidStateError');
        }
        await this.device.setSignals(signals);
    }

    async forget() {}

    /** The line was disturbed: a read fails, and may be tried again. */
    disturb(name) {
        const { controller } = this;
        this.#newReadable();
        controller.error(new DOMException('disturbed', name));
    }

    /** Pulls the cable. */
    pull() {
        this.lost = true;
        this.controller?.error(new DOMException('The device has been lost.', 'NetworkError'));
        this.readable = null;
        this.writable = null;
        this.controller = null;
    }

    /** Plugs it in again. */
    plug() {
        this.lost = false;
    }
}
