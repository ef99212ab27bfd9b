/*
 * MD5 (RFC 1321). A chip tells the MD5 of what its flash holds, and browsers compute no MD5; it finds faults of writing
 * here, and protects from nobody.
 */

const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32) | 0);
const BLOCK = 64;

function mix(state, words) {
    let [a, b, c, d] = state;
    for (let i = 0; i < 64; i++) {
        const round = i >> 4;
        let f;
        let word;
        if (round === 0) {
            f = (b & c) | (~b & d);
            word = i;
        } else if (round === 1) {
            f = (d & b) | (~d & c);
            word = (5 * i + 1) & 15;
        } else if (round === 2) {
            f = b ^ c ^ d;
            word = (3 * i + 5) & 15;
        } else {
            f = c ^ (b | ~d);
            word = (7 * i) & 15;
        }
        const sum = (a + f + SINES[i] + words[word]) | 0;
        const shift = SHIFTS[4 * round + (i & 3)];
        a = d;
        d = c;
        c = b;
        b = (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

/**
 * The MD5 of bytes.
 * @param {Uint8Array} bytes
 * @returns {string} 32 hexadecimal digits
 */
export function md5(bytes) {
    const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
    const words = new Int32Array(BLOCK / 4);
    const whole = bytes.length - bytes.length % BLOCK;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 0; at < whole; at += BLOCK) {
        for (let i = 0; i < words.length; i++) {
            words[i] = view.getInt32(at + 4 * i, true);
        }
        mix(state, words);
    }
    const rest = bytes.subarray(whole);
    const end = new Uint8Array(rest.length < BLOCK - 8 ? BLOCK : 2 * BLOCK);
    end.set(rest);
    end[rest.length] = 0x80;
    const tail = new DataView(end.buffer);
    tail.setBigUint64(end.length - 8, BigInt(bytes.length) * 8n, true);
    for (let at = 0; at < end.length; at += BLOCK) {
        for (let i = 0; i < words.length; i++) {
            words[i] = tail.getInt32(at + 4 * i, true);
        }
        mix(state, words);
    }
    return hexOf(new Uint8Array(state.buffer));
}

/**
 * Bytes as hexadecimal digits.
 * @param {Uint8Array} bytes
 */
export function hexOf(bytes) {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
