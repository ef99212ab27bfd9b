/*
 * Builds the page: node build.mjs
 *
 *   dist/engine.wasm     the C engine, compiled by clang and linked by wasm-ld
 *   dist/*               the files of page/
 *   dist/vendor/         esptool-js, as its package brings it for browsers, and the licences of what is in it
 *
 * dist/ is changed when all else has succeeded. CLANG and WASM_LD name other programs.
 */
import { execFile } from 'node:child_process';
import { cp, copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');
const objects = join(root, 'build/web');
const dist = join(here, 'dist');
const clang = process.env.CLANG ?? 'clang';
const linker = process.env.WASM_LD ?? 'wasm-ld';

// No C library: wasm/ has the few functions of one that the engine calls. Products are never fused with sums. NEON's kernels
// run on WebAssembly's vectors, by wasm/neon; -O3 opens their loops over four vectors, which -O2 would keep in memory.
const flags = ['--target=wasm32-unknown-unknown', '-std=c11', '-O3', '-msimd128', '-DCHIPLM_HAS_NEON=1', '-ffreestanding',
    '-ffp-contract=off', '-fno-math-errno', '-fvisibility=hidden', '-nostdlibinc', '-isystem', join(here, 'wasm/libc'),
    `-I${join(here, 'wasm/neon')}`, `-I${join(root, 'engine')}`, `-I${join(root, 'firmware/board')}`, '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Wconversion', '-Wdouble-promotion',
    '-Wcast-qual', '-Wstrict-prototypes', '-Wvla', '-Werror'];

// A stack that grows too long meets the start of memory, and traps, before it reaches any data.
const linkFlags = ['--no-entry', '--gc-sections', '--strip-all', '--fatal-warnings', '--stack-first', '-z', 'stack-size=262144'];

/** Runs a program; what it prints when it fails is in the error. */
async function run(program, args) {
    try {
        await promisify(execFile)(program, args, { maxBuffer: 1 << 26 });
    } catch (error) {
        throw new Error(error.code === 'ENOENT' ? `${program} is missing: run ./setup.sh page, which installs it`
            : `${program} failed:\n${error.stderr}`);
    }
}

/** The C files of a folder. */
async function sources(folder) {
    const names = await readdir(folder);
    return names.filter((name) => name.endsWith('.c')).sort().map((name) => join(folder, name));
}

/** Calls work for every item, a few at a time. */
async function each(items, work) {
    const left = [...items];
    const many = (availableParallelism ?? (() => cpus().length))();
    await Promise.all(Array.from({ length: many }, async () => {
        while (left.length > 0) {
            await work(left.shift());
        }
    }));
}

/** Compiles the engine, and returns the module's path. */
async function compile() {
    const board = ['profile.c', 'writer.c'].map((name) => join(root, 'firmware/board', name));
    const files = [...await sources(join(root, 'engine')), ...board, ...await sources(join(here, 'wasm'))];
    const object = (file) => join(objects, `${basename(dirname(file))}-${basename(file, '.c')}.o`);
    await rm(objects, { recursive: true, force: true });
    await mkdir(objects, { recursive: true });
    await each(files, (file) => {
        const own = basename(file) === 'memory.c' ? ['-fno-builtin'] : [];
        return run(clang, [...flags, ...own, '-c', file, '-o', object(file)]);
    });
    const module = join(objects, 'engine.wasm');
    await run(linker, [...linkFlags, ...files.map(object), '-o', module]);
    return module;
}

/** What comes from packages: where in node_modules, and its name in dist/vendor. */
const vendor = [
    ['esptool-js/bundle.js', 'esptool.js'],
    ['esptool-js/LICENSE', 'esptool-js.LICENSE'],
    ['pako/LICENSE', 'pako.LICENSE'],
    ['atob-lite/LICENSE.md', 'atob-lite.LICENSE'],
];

/** Reads what comes from packages. */
async function readVendor() {
    return Promise.all(vendor.map(async ([from, to]) => {
        try {
            return [to, await readFile(join(here, 'node_modules', from))];
        } catch (error) {
            throw new Error(error.code === 'ENOENT' ? `node_modules/${from} is missing: run npm ci in firmware/web` : error.message);
        }
    }));
}

/** Puts everything into dist, where only its README stays. */
async function fill(module, packages) {
    for (const name of await readdir(dist)) {
        if (name !== 'README.md') {
            await rm(join(dist, name), { recursive: true });
        }
    }
    await cp(join(here, 'page'), dist, { recursive: true });
    await mkdir(join(dist, 'vendor'));
    for (const [name, bytes] of packages) {
        await writeFile(join(dist, 'vendor', name), bytes);
    }
    await copyFile(module, join(dist, 'engine.wasm'));
}

try {
    const [module, packages] = await Promise.all([compile(), readVendor()]);
    await fill(module, packages);
} catch (error) {
    console.error(`build.mjs: ${error.message}`);
    process.exitCode = 1;
}
