/* Processor time: tests that measure must not mind what else the machine does. */

/** Seconds of processor time of this process since a call of this function. */
export function stopwatch() {
    const before = process.cpuUsage();
    return () => {
        const { user, system } = process.cpuUsage(before);
        return (user + system) / 1e6;
    };
}
