/* Numbers as the page writes them. */

/** 1234567 as 1,234,567. @param {number} n */
export function whole(n) {
    return Math.round(n).toLocaleString('en-GB');
}

/**
 * Three digits that count: 0.0123, 1.23, 12.3, 123, 1,234.
 * @param {number} x
 */
export function short(x) {
    if (!Number.isFinite(x)) {
        return '–';
    }
    const size = Math.abs(x);
    if (size >= 100) {
        return whole(x);
    }
    return x.toFixed(size >= 10 ? 1 : size >= 1 || size === 0 ? 2 : 3);
}

/** A number as short as it can be: 1,500, 15, 7.5. @param {number} x */
export function plain(x) {
    return x.toLocaleString('en-GB', { maximumSignificantDigits: 3 });
}

/** @param {number} n of bytes */
export function bytes(n) {
    if (n >= 1e6) {
        return `${short(n / 1e6)} MB`;
    }
    return n >= 1e4 ? `${short(n / 1e3)} kB` : `${whole(n)} bytes`;
}

/** Where something lies. @param {number} n */
export function address(n) {
    return `0x${n.toString(16)}`;
}

/**
 * A time that is left.
 * @param {number} seconds
 */
export function left(seconds) {
    if (seconds < 1.5) {
        return 'a second left';
    }
    return seconds < 90 ? `${Math.round(seconds)} seconds left` : `${Math.round(seconds / 60)} minutes left`;
}

/**
 * How much larger or smaller, in words.
 * @param {number} measured
 * @param {number} predicted
 */
export function against(measured, predicted) {
    const percent = (measured / predicted - 1) * 100;
    if (Math.abs(percent) < 0.5) {
        return 'as predicted';
    }
    return `${Math.abs(percent) < 10 ? Math.abs(percent).toFixed(1) : Math.round(Math.abs(percent))} % ${percent > 0 ? 'more' : 'less'} than predicted`;
}

/** @param {number} n @param {string} one @param {string} many */
export function count(n, one, many = `${one}s`) {
    return `${whole(n)} ${n === 1 ? one : many}`;
}
