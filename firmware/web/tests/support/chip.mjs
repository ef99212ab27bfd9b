/*
 * A chip on the other end of a serial port, for tests: its boot loader in ROM and esptool's helper program speak esptool's
 * serial protocol, as far as flashing goes, and check what they are told; its lines DTR and RTS choose what runs. No real
 * USB, and no real boot loader, is in it: that a board does the same was not tried.
 */
import { createHash } from 'node:crypto';
import { inflateSync } from 'node:zlib';

import { slip, SlipReader } from '../../page/loader-line.js';

const OPS = {
    FLASH_BEGIN: 0x02, FLASH_DATA: 0x03, MEM_BEGIN: 0x05, MEM_END: 0x06, MEM_DATA: 0x07, SYNC: 0x08, WRITE_REG: 0x09,
    READ_REG: 0x0a, SPI_ATTACH: 0x0d, DEFL_BEGIN: 0x10, DEFL_DATA: 0x11, DEFL_END: 0x12, MD5: 0x13, SECURITY: 0x14, READ_FLASH: 0xd2,
};
const SECTOR = 0x1000;
const SPI = 0x60002000; // registers of the flash's controller
const SPI_W0 = SPI + 0x58;
const SPI_USR2 = SPI + 0x20;
const OPTION1 = 0x6000812c; // bit 0 asks for the boot loader at every reset
const READ_ID = 0x9f;
const USER_COMMAND = 1 << 18;

const le = (...words) => {
    const bytes = new Uint8Array(4 * words.length);
    const view = new DataView(bytes.buffer);
    words.forEach((word, i) => view.setUint32(4 * i, word, true));
    return bytes;
};
const md5 = (bytes) => createHash('md5').update(bytes).digest();

/**
 * A fake of the chip. Faults that a test wants are fields of it.
 */
export class Chip {
    /**
     * @param {object} [options]
     * @param {number} [options.id] number of the chip; 9 is the ESP32-S3
     * @param {number} [options.flashId] as the flash's controller tells it; 0x1840ef is 16 MB
     * @param {number} [options.flashBytes]
     * @param {number} [options.flags] of security
     * @param {number} [options.crypt] bits that count how often flash was encrypted
     * @param {number} [options.magic] in the register that older chips are known by
     * @param {Uint8Array[]} [options.helper] text and data of the helper program that must arrive; none: not compared
     * @param {{connect: (send: (bytes: Uint8Array) => void) => {write(bytes: Uint8Array): void, close(): void}}} [options.program]
     *   what runs when the chip starts from flash
     */
    constructor({ id = 9, flashId = 0x1840ef, flashBytes = 1 << 24, helper, program, flags = 0, crypt = 0, magic = 0x09 } = {}) {
        this.id = id;
        this.flashId = flashId;
        this.flash = new Uint8Array(flashBytes).fill(0xff);
        this.helper = helper;
        this.program = program;
        this.flags = flags;
        this.crypt = crypt;
        /** What went wrong: a test asks that it is empty. @type {string[]} */
        this.complaints = [];
        /** Every region that was written, in order. @type {{offset: number, bytes: number}[]} */
        this.written = [];
        /** Called with each operation before it is carried out; may throw to keep it from being answered. */
        this.onOperation = () => {};
        /** Called when bytes are to go to the computer. */
        this.send = () => {};
        this.registers = new Map([[0x40001000, magic]]);
        this.signals = { dataTerminalReady: false, requestToSend: false };
        this.wantsLoader = false;
        this.running = null;
        this.reader = new SlipReader();
        this.mode = 'off';
    }

    /** Power. */
    start() {
        this.#boot(false);
    }

    /** No power. */
    stop() {
        this.running?.close();
        this.running = null;
        this.mode = 'off';
    }

    /** Takes what the computer sends. @param {Uint8Array} bytes */
    receive(bytes) {
        if (this.mode === 'program') {
            this.running?.write(bytes);
            return;
        }
        for (const packet of this.reader.take(bytes)) {
            this.#packet(packet);
        }
    }

    /**
     * DTR alone asks for the boot loader, RTS alone resets: so the chip's own USB port has it.
     * @param {SerialOutputSignals} signals
     */
    setSignals(signals) {
        Object.assign(this.signals, signals);
        const { dataTerminalReady: dtr, requestToSend: rts } = this.signals;
        if (!rts) {
            this.wantsLoader = dtr;
        } else if (!dtr) {
            this.#boot(this.wantsLoader);
        }
    }

    #boot(asked) {
        const loader = asked || (this.registers.get(OPTION1) & 1) === 1;
        this.running?.close();
        this.running = null;
        this.reader.reset();
        this.mode = loader ? 'rom' : 'program';
        this.helperParts = 0;
        const text = `ESP-ROM:esp32s3-20210327\r\nrst:0x15 (USB_UART_CHIP_RESET),boot:0x${loader ? '0 (DOWNLOAD(USB/UART0))\r\nwaiting for download' : '8 (SPI_FAST_FLASH_BOOT)'}\r\n`;
        this.send(new TextEncoder().encode(text));
        if (!loader && this.program) {
            this.running = this.program.connect((bytes) => this.mode === 'program' && this.send(bytes), this);
        }
    }

    #complain(text) {
        this.complaints.push(text);
    }

    #packet(packet) {
        const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
        if (packet[0] !== 0 || packet.length < 8) {
            if (this.reading !== undefined && packet.length === 4) {
                this.#acknowledged(view.getUint32(0, true));
                return;
            }
            this.#complain(`a packet of ${packet.length} bytes that starts with ${packet[0]}`);
            return;
        }
        const op = packet[1];
        const data = packet.subarray(8);
        const checksum = view.getUint32(4, true);
        if (data.length !== view.getUint16(2, true)) {
            this.#complain(`operation ${op} says ${view.getUint16(2, true)} bytes and has ${data.length}`);
        }
        try {
            this.onOperation(op, data);
        } catch {
            return;
        }
        this.#operation(op, data, new DataView(data.buffer, data.byteOffset, data.length), checksum);
    }

    #answer(op, value = 0, data = new Uint8Array(0), status = 0) {
        const ends = this.mode === 'stub' || op === OPS.SECURITY ? 2 : 4; // bytes of status, of which the first two count
        const packet = new Uint8Array(8 + data.length + ends);
        packet[0] = 1;
        packet[1] = op;
        packet.set(le(value), 4);
        packet[2] = data.length + ends;
        packet.set(data, 8);
        packet[8 + data.length] = status === 0 ? 0 : 1;
        packet[9 + data.length] = status;
        this.send(slip(packet));
    }

    #operation(op, data, view, checksum) {
        const word = (i) => view.getUint32(4 * i, true);
        const stub = this.mode === 'stub';
        const helpers = [OPS.READ_FLASH];
        if (!stub && helpers.includes(op)) {
            this.#answer(op, 0, new Uint8Array(0), 5); // the ROM does not know it
            return;
        }
        switch (op) {
        case OPS.SYNC:
            for (let i = 0; i < 8; i++) {
                this.#answer(op, 0x20120707);
            }
            return;
        case OPS.READ_REG:
            this.#answer(op, this.registers.get(word(0)) ?? 0);
            return;
        case OPS.WRITE_REG:
            this.registers.set(word(0), ((this.registers.get(word(0)) ?? 0) & ~word(2)) | (word(1) & word(2)));
            if (word(0) === SPI && word(1) === USER_COMMAND) {
                this.registers.set(SPI, 0);
                if ((this.registers.get(SPI_USR2) & 0xff) === READ_ID) {
                    this.registers.set(SPI_W0, this.flashId);
                }
            }
            this.#answer(op);
            return;
        case OPS.SECURITY:
            if (this.id === 0) { // the first chip of the family does not know it
                this.#answer(op, 0, new Uint8Array(0), 5);
                return;
            }
            this.#answer(op, 0, Uint8Array.of(...le(this.flags), this.crypt, 0, 0, 0, 0, 0, 0, 0, ...le(this.id, 0)));
            return;
        case OPS.SPI_ATTACH:
            this.#answer(op);
            return;
        case OPS.MEM_BEGIN:
            this.memory = { size: word(0), offset: word(3), parts: [] };
            this.#answer(op);
            return;
        case OPS.MEM_DATA:
            this.#sum(data, checksum);
            this.memory.parts.push(data.slice(16));
            if (this.memory.parts.reduce((n, { length }) => n + length, 0) === this.memory.size) {
                this.#helperPart(Buffer.concat(this.memory.parts));
            }
            this.#answer(op);
            return;
        case OPS.MEM_END:
            this.#answer(op);
            this.mode = 'stub';
            if (this.helper !== undefined && this.helperParts !== this.helper.length) {
                this.#complain(`the helper program came in ${this.helperParts} parts`);
            }
            this.send(slip(new TextEncoder().encode('OHAI')));
            return;
        case OPS.DEFL_BEGIN:
            this.write = { size: word(0), blocks: word(1), offset: word(3), parts: [] };
            if (this.write.offset % SECTOR !== 0) {
                this.#complain(`writing starts at ${this.write.offset}, inside of a sector`);
            }
            this.flash.fill(0xff, this.write.offset, Math.ceil((this.write.offset + this.write.size) / SECTOR) * SECTOR);
            this.#answer(op);
            return;
        case OPS.DEFL_DATA:
            this.#sum(data, checksum);
            if (word(1) !== this.write.parts.length) {
                this.#complain(`block ${word(1)} came as number ${this.write.parts.length}`);
            }
            if (word(0) !== data.length - 16) {
                this.#complain(`block ${word(1)} says ${word(0)} bytes and has ${data.length - 16}`);
            }
            this.write.parts.push(data.slice(16));
            if (this.write.parts.length === this.write.blocks) {
                this.#unpack();
            }
            this.#answer(op);
            return;
        case OPS.DEFL_END:
            this.#answer(op);
            return;
        case OPS.MD5: {
            const digest = md5(this.flash.subarray(word(0), word(0) + word(1)));
            this.#answer(op, 0, stub ? digest : new TextEncoder().encode(digest.toString('hex')));
            return;
        }
        case OPS.READ_FLASH:
            this.#answer(op);
            this.reading = { from: word(0), bytes: word(1), block: word(2), sent: 0 };
            this.#readOn();
            return;
        default:
            this.#complain(`operation 0x${op.toString(16)} is not known here`);
            this.#answer(op, 0, new Uint8Array(0), 5);
        }
    }

    /** The blocks of a packet carry the sum of their bytes. */
    #sum(data, want) {
        let sum = 0xef;
        for (const byte of data.subarray(16)) {
            sum ^= byte;
        }
        if (sum !== want) {
            this.#complain(`a block's sum is ${sum}, it says ${want}`);
        }
    }

    #helperPart(bytes) {
        this.helperParts++;
        if (this.helper !== undefined && !this.helper.some((part) => Buffer.compare(bytes, part) === 0)) {
            this.#complain('a part of the helper program is not the one of esptool-js');
        }
    }

    #unpack() {
        const { size, offset, parts } = this.write;
        let bytes = new Uint8Array(0);
        try {
            bytes = inflateSync(Buffer.concat(parts));
        } catch (error) {
            this.#complain(`what was written at ${offset} cannot be unpacked: ${error.message}`);
        }
        if (bytes.length !== size) {
            this.#complain(`${bytes.length} bytes came for ${size} at ${offset}`);
        }
        this.flash.set(bytes, offset);
        this.written.push({ offset, bytes: bytes.length });
    }

    #readOn() {
        const { from, bytes, block, sent } = this.reading;
        const part = this.flash.slice(from + sent, from + Math.min(bytes, sent + block));
        this.reading.sent += part.length;
        this.send(slip(part));
    }

    #acknowledged(count) {
        const { from, bytes, sent } = this.reading;
        if (count !== sent) {
            this.#complain(`${count} bytes were acknowledged of ${sent}`);
        }
        if (sent < bytes) {
            this.#readOn();
            return;
        }
        this.send(slip(md5(this.flash.subarray(from, from + bytes))));
        this.reading = undefined;
    }
}
