/* What to do about each refusal of a board; its own message says what is wrong. */
import { Trouble } from './trouble.js';

const advice = {
    'model-missing': 'Flash firmware and model: the partition table comes with the firmware.',
    'model-empty': 'Flash a model.',
    model: 'The model is damaged, or made for another version of the firmware: flash firmware and model together, so that '
        + 'one fits the other.',
    psram: 'The board wants an ESP32-S3-N16R8 module: 8 MB of octal PSRAM. A module whose name ends in R2 has quad PSRAM, '
        + 'one without an R has none; for such a board build the firmware with its mode, and a smaller model.',
    memory: 'Choose a smaller model, or export it again for this board with less SRAM or PSRAM in the target file.',
    core: 'Flash the firmware again, as it was built.',
    golden: 'The board does not compute the right bits: flash firmware and model again; if that does not help, lower the '
        + 'clock of its PSRAM, or take another board.',
    context: 'Use a shorter start, or fewer tokens.',
    'line-too-long': 'Use a shorter start: a line has 4,096 bytes at most.',
    range: 'Choose a value within those limits.',
    number: 'Choose a value within those limits.',
    encode: 'Write the start in other words: this model’s tokenizer has no token for some of its bytes.',
    engine: 'Flash the model again; if it happens once more, please report it with this text.',
    profile: 'Switch the profile on, then let the board write.',
};

/**
 * What a board refused, as something to show. The code is "board-" and the board's own.
 * @param {{code: string, message: string}} refusal
 * @returns {Trouble}
 */
export function refused(refusal) {
    const todo = advice[refusal.code] ?? 'If the page sent it, please report this with its text.';
    return new Trouble(`board-${refusal.code}`, `The board says: ${refusal.message}.`, todo);
}
