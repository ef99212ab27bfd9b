/* Firmware and models for tests: of the right form, and of bytes that do not compress. */
import { createHash, randomBytes } from 'node:crypto';

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** An application or boot loader: header, description, noise. */
export function program(length, { chip = 9, version = 'v1.2-test' } = {}) {
    const bytes = new Uint8Array(randomBytes(length));
    bytes[0] = 0xe9;
    const view = new DataView(bytes.buffer);
    view.setUint16(12, chip, true);
    view.setUint32(32, 0xabcd5432, true);
    bytes.fill(0, 48, 80);
    bytes.set(new TextEncoder().encode(version), 48);
    return bytes;
}

/** An image: as far as a flasher looks. */
export function image(length, crc = 0x060d3bd9) {
    const bytes = new Uint8Array(randomBytes(length));
    bytes.set([0x43, 0x4c, 0x4d, 0, 2, 0, 0, 0]);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(16, BigInt(length), true);
    view.setUint32(28, crc, true);
    return bytes;
}

/** A partition table as it lies in flash. */
export function table(entries, { checksum = true } = {}) {
    const bytes = new Uint8Array(0xc00).fill(0xff);
    const view = new DataView(bytes.buffer);
    entries.forEach(({ name, type = 1, subtype = 2, offset, bytes: length }, i) => {
        const at = 32 * i;
        bytes.fill(0, at, at + 32);
        bytes.set([0xaa, 0x50, type, subtype], at);
        view.setUint32(at + 4, offset, true);
        view.setUint32(at + 8, length, true);
        bytes.set(new TextEncoder().encode(name), at + 12);
    });
    if (checksum) {
        const at = 32 * entries.length;
        bytes.set([0xeb, 0xeb], at);
        bytes.set(createHash('md5').update(bytes.subarray(0, at)).digest(), at + 16);
    }
    return bytes;
}

/** The partitions of chiplm's firmware; the model's can be elsewhere, or absent. */
export function partitions(model = { offset: 0xd0000, bytes: 0xf30000 }) {
    const entries = [
        { name: 'nvs', offset: 0x9000, bytes: 0x6000 },
        { name: 'phy_init', subtype: 1, offset: 0xf000, bytes: 0x1000 },
        { name: 'factory', type: 0, subtype: 0, offset: 0x10000, bytes: 768 << 10 },
    ];
    if (model) {
        entries.push({ name: 'model', type: 0x40, subtype: 0, ...model });
    }
    return entries;
}

/** A load with firmware. */
export function load({ modelBytes = 150001, model, chip } = {}) {
    const part = (name, offset, bytes) => ({ name, offset, bytes, sha256: sha256(bytes) });
    return {
        title: 'test',
        version: 'v1.2-test',
        model: part('model', null, model ?? image(modelBytes)),
        firmware: [
            part('bootloader', 0, program(21003, { chip })), part('partition table', 0x8000, table(partitions())),
            part('firmware', 0x10000, program(300002, { chip })),
        ],
    };
}
