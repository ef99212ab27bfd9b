/* A board on a USB port, by Web Serial. */
import { goneTrouble } from './lines.js';
import { Trouble } from './trouble.js';

/** The vendor of the chip's own USB port, and its product: serial line and JTAG in one. */
export const ESPRESSIF = 0x303a;
export const USB_JTAG_SERIAL = 0x1001;

const BAUD = 115200; // means nothing to the chip's own USB port
const BUFFER = 1 << 16; // bytes: a board writes faster than a busy page reads
const HARMLESS = ['BufferOverrunError', 'BreakError', 'FramingError', 'ParityError']; // after them a port can be read on

/**
 * Web Serial, or why there is none.
 * @param {{serial?: Serial}} [navigator]
 * @param {boolean} [secure] whether the page is in a secure context
 * @returns {Serial}
 */
export function webSerial(navigator = globalThis.navigator, secure = globalThis.isSecureContext) {
    if (navigator?.serial !== undefined) {
        return navigator.serial;
    }
    if (!secure) {
        throw new Trouble('insecure', 'Browsers let a page talk to a board only if it comes over https or from this machine.',
            'Open it at http://127.0.0.1, as chiplm page does, or over https.');
    }
    throw new Trouble('no-serial', 'This browser has no Web Serial, so this page cannot reach a USB port in it.',
        'Chrome, Edge, Opera and other browsers made from Chromium have it, on a computer, from version 89 on. In this one, '
        + 'the model runs in the browser itself and on a virtual board; chiplm flash and chiplm chat reach the board without one.');
}

/**
 * Lets the person choose a port.
 * @param {Serial} serial
 * @param {{any?: boolean}} [options] any: offer all ports, not only those of the chip's maker
 * @returns {Promise<SerialPort>}
 */
export async function choosePort(serial, { any = false } = {}) {
    try {
        return await serial.requestPort(any ? {} : { filters: [{ usbVendorId: ESPRESSIF }] });
    } catch (error) {
        if (error?.name === 'NotFoundError') {
            throw new Trouble('no-port', 'No port was chosen.',
                any ? 'Plug the board in with a cable that carries data, at its port named USB; then connect.'
                    : 'Plug the board in at its port named USB (not UART or COM), with a cable that carries data. No board '
                        + 'in the list? Hold BOOT, press RESET, release both; or show all ports.', error);
        }
        if (error?.name === 'SecurityError') {
            throw new Trouble('forbidden', 'The browser does not let this page ask for a port.',
                'Allow serial ports in the settings of this site; a page inside another page may not ask at all.', error);
        }
        throw error;
    }
}

/**
 * Opens a port. @param {SerialPort} port @param {SerialOptions} [options]
 * @returns {Promise<void>}
 */
export async function openPort(port, options = {}) {
    try {
        await port.open({ baudRate: BAUD, bufferSize: BUFFER, ...options });
    } catch (error) {
        if (error?.name === 'InvalidStateError') {
            throw new Trouble('busy', 'The port is open already, in this page.', 'Load the page anew.', error);
        }
        throw new Trouble('busy', 'The port cannot be opened: another program or another page uses it.',
            'End what uses it (a terminal, idf.py monitor, chiplm chat, a second page), then connect. On Linux, your user '
            + 'must be in the group of the port, often dialout.', error);
    }
}

/**
 * What a port is called in a sentence.
 * @param {SerialPort} port
 */
export function portName(port) {
    const { usbVendorId, usbProductId } = port.getInfo();
    if (usbVendorId === undefined) {
        return 'the serial port';
    }
    const hex = (n) => (n ?? 0).toString(16).padStart(4, '0');
    return `the USB port ${hex(usbVendorId)}:${hex(usbProductId)}`;
}

/**
 * Whether a port is not the chip's own: a bridge beside it, on which the firmware does not talk.
 * @param {SerialPort} port
 */
export function isBridge(port) {
    const { usbVendorId } = port.getInfo();
    return usbVendorId !== undefined && usbVendorId !== ESPRESSIF;
}

/**
 * Resets the chip at a port that is open, so that it starts its program: RTS holds it in reset, DTR would choose the boot
 * loader. esptool-js ends with RTS released only, which resets nothing.
 * @param {SerialPort} port
 */
export async function resetChip(port) {
    await port.setSignals({ dataTerminalReady: false, requestToSend: true });
    await new Promise((resolve) => { setTimeout(resolve, 100); });
    await port.setSignals({ dataTerminalReady: false, requestToSend: false });
}

/**
 * An open port as a stream of bytes. Closing the stream closes the port.
 * @param {SerialPort} port
 * @returns {import('./lines.js').ByteStream}
 */
export function serialStream(port) {
    let reader = null;
    let closed = false;
    return {
        name: portName(port),
        async read() {
            while (!closed && port.readable) {
                reader ??= port.readable.getReader();
                try {
                    const { value, done } = await reader.read();
                    if (!done) {
                        return value;
                    }
                    break;
                } catch (error) {
                    if (!HARMLESS.includes(error?.name)) {
                        throw goneTrouble(error);
                    }
                    release(reader);
                    reader = null; // the port has a new stream
                }
            }
            if (!closed) {
                throw goneTrouble();
            }
            return null;
        },
        async write(bytes) {
            if (closed || !port.writable) {
                throw goneTrouble();
            }
            const writer = port.writable.getWriter();
            try {
                await writer.write(bytes);
            } catch (error) {
                throw goneTrouble(error);
            } finally {
                release(writer);
            }
        },
        async close() {
            if (closed) {
                return;
            }
            closed = true;
            await reader?.cancel().catch(() => {}); // a port that is gone cannot be cancelled, or closed
            release(reader);
            await port.close().catch(() => {});
        },
    };
}

function release(lock) {
    try {
        lock?.releaseLock();
    } catch {
        // a stream that broke holds no lock
    }
}
