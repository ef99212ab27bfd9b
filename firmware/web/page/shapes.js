/* Of what shape a value of JSON is. */

export const isText = (value) => typeof value === 'string';
export const isNumber = (value) => typeof value === 'number';
export const isSize = (value) => Number.isSafeInteger(value) && value > 0;
export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Whether all members of a list are of a kind; false for what is no list.
 * @param {unknown} value
 * @param {(value: unknown) => boolean} kind
 */
export const isListOf = (value, kind) => Array.isArray(value) && value.every(kind);

/**
 * Whether those fields of an object that are there are of a kind.
 * @param {object} object
 * @param {(value: unknown) => boolean} kind
 * @param {...string} names
 */
export const all = (object, kind, ...names) => names.every((name) => object[name] === undefined || kind(object[name]));

/**
 * Whether fields of an object are there, and of a kind.
 * @param {object} object
 * @param {(value: unknown) => boolean} kind
 * @param {...string} names
 */
export const has = (object, kind, ...names) => names.every((name) => kind(object[name]));
