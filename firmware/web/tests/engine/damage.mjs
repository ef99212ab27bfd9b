/* Images that were changed so that only what they compute is wrong: their checksums are right. docs/image.md has the layout. */
const HEADER = 64;
const ENTRY = 32; // of the section table
const FILE_CRC = 28;

/** CRC-32 (IEEE) of bytes. */
function crc32(bytes) {
    let crc = ~0;
    for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; bit++) {
            crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
        }
    }
    return ~crc >>> 0;
}

/** An image whose golden wants another digest: what an engine with a wrong bit would find. */
export function withOtherGolden(image) {
    const out = Buffer.from(image);
    const entry = Array.from({ length: out.readUInt32LE(24) }, (_, i) => HEADER + i * ENTRY)
        .find((at) => out.toString('latin1', at, at + 4) === 'GOLD');
    const offset = Number(out.readBigUInt64LE(entry + 8));
    const bytes = Number(out.readBigUInt64LE(entry + 16));
    out[offset + 8] ^= 1;
    out.writeUInt32LE(crc32(out.subarray(offset, offset + bytes)), entry + 4);
    out.writeUInt32LE(0, FILE_CRC);
    out.writeUInt32LE(crc32(out), FILE_CRC);
    return out;
}
