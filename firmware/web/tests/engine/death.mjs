/* Loaded in a worker before its script: the worker ends, as a browser that is short of memory ends one. */
setTimeout(() => { throw new Error('out of memory'); }, 300);
