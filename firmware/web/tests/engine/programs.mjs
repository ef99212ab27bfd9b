/* The programs that the tests hold the engine to: built once, and asked line by line. */
import { execFile, spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { chiplm } from '../support/program.mjs';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const folder = `${root}build/web-test`;

/** Runs a program in the root of the repository, and gives what it printed. */
export async function run(program, ...args) {
    const { stdout } = await promisify(execFile)(program, args, { cwd: root, maxBuffer: 1 << 26 });
    return stdout;
}

/** Builds a Go program of the repository, and gives its path. */
export async function build(name, source) {
    await mkdir(folder, { recursive: true });
    await run('go', 'build', '-o', `${folder}/${name}`, source);
    return `${folder}/${name}`;
}

/** An export of a model for the chip: with clusters, and tensors in all its memories. */
export async function exported(model) {
    const out = `${folder}/${model}-esp32s3`;
    await run(chiplm, 'export', '--model', model, '--target', 'esp32s3', '--out', out);
    return `${out}/model.clm`;
}

/** A program that answers lines with lines. */
export class Asked {
    #child;
    #lines;

    constructor(program, ...args) {
        this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
        this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    }

    async line() {
        const { value, done } = await this.#lines.next();
        if (done) {
            throw new Error(`${this.#child.spawnfile} ended without an answer`);
        }
        return value;
    }

    send(request) {
        this.#child.stdin.write(`${request}\n`);
    }

    async ask(request) {
        this.send(request);
        return this.line();
    }

    end() {
        this.#child.stdin.end();
        this.#child.kill();
    }
}

/** tests/reference with an image: the Go binding of the engine. */
export async function reference(image) {
    return new Asked(await build('reference', './firmware/web/tests/reference'), image);
}

/** The virtual board with an image, when it is ready: the firmware on this machine. */
export async function board(image) {
    await run('make', '--silent', '-C', 'firmware', 'host');
    const asked = new Asked(`${root}build/board`, '--model', image);
    for (let line = ''; line !== '# ready';) {
        line = await asked.line();
        if (line.startsWith('# not ready')) {
            asked.end();
            throw new Error(line);
        }
    }
    return asked;
}

/** The ids and the end that a board gives to a request for a text. */
export async function boardText(asked, request) {
    asked.send(request);
    const ids = [];
    for (;;) {
        const [kind, ...fields] = (await asked.line()).split(' ');
        if (kind === 'T') {
            ids.push(Number(fields[0]));
        } else if (kind === 'E') {
            return { ids, count: Number(fields[0]), why: fields[2] };
        } else if (kind === '!') {
            throw new Error(fields.join(' '));
        }
    }
}
