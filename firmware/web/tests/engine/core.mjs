/* The engine without its worker, for tests. */
import { Core } from '../../page/engine-core.js';
import { wasm } from './released.mjs';

/** A world that never says stop. */
export const calm = { pause: async () => {}, stopped: () => false };

/** Starts an image. */
export function load(image) {
    return Core.load({ wasm, image });
}

/** Writes a text with a core; the ids, the end, and the time of the prompt. */
export async function write(core, request, ear = calm) {
    const ids = [];
    let prompt = null;
    const end = await core.generate(request, ear, {
        onPrompt: (ms) => { prompt = ms; },
        onToken: ({ id }) => ids.push(id),
    });
    return { ...end, ids, prompt };
}
