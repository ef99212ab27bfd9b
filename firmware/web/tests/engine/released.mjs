/* The released model that the tests run, and the built engine. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const folder = new URL('../../../../checkpoints/released/models/combo/', import.meta.url);

/** The image. */
export const image = await readFile(new URL('model.clm', folder));
export const imagePath = fileURLToPath(new URL('model.clm', folder));

/** What its release says of it. */
export const facts = JSON.parse(await readFile(new URL('release.json', folder), 'utf8'));

/** The module, which make build makes. */
export const wasm = await readFile(new URL('../../dist/engine.wasm', import.meta.url));
