/*
 * Bytes on the line: every byte of a line is a character of the same number here, so that nothing is lost to a decoding.
 * The escapes are those of firmware/PROTOCOL.md.
 */

/**
 * The bytes of a text in which every character is a byte.
 * @param {string} text
 * @returns {Uint8Array}
 */
export function bytesOf(text) {
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) {
        bytes[i] = text.charCodeAt(i);
    }
    return bytes;
}

const hex = (byte) => byte.toString(16).padStart(2, '0');

/**
 * Writes bytes as the TEXT of a request: control bytes and the backslash as escapes, all else as it is.
 * @param {Uint8Array} bytes
 * @returns {string} of one character a byte
 */
export function escape(bytes) {
    let line = '';
    for (const byte of bytes) {
        if (byte === 0x0a) {
            line += '\\n';
        } else if (byte === 0x5c) {
            line += '\\\\';
        } else if (byte < 0x20 || byte === 0x7f) {
            line += `\\x${hex(byte)}`;
        } else {
            line += String.fromCharCode(byte);
        }
    }
    return line;
}

/**
 * Reads the BYTES of an answer.
 * @param {string} text
 * @returns {Uint8Array | null} null if it is not what a board writes
 */
export function unescape(text) {
    const bytes = [];
    for (let i = 0; i < text.length; i++) {
        const c = text.charCodeAt(i);
        if (c < 0x20 || c > 0x7e) {
            return null; // a board escapes it
        }
        if (c !== 0x5c) {
            bytes.push(c);
            continue;
        }
        const kind = text[++i];
        if (kind === 'n') {
            bytes.push(0x0a);
        } else if (kind === '\\') {
            bytes.push(0x5c);
        } else if (kind === 'x' && /^[0-9a-fA-F]{2}$/.test(text.slice(i + 1, i + 3))) {
            bytes.push(Number.parseInt(text.slice(i + 1, i + 3), 16));
            i += 2;
        } else {
            return null;
        }
    }
    return Uint8Array.from(bytes);
}
