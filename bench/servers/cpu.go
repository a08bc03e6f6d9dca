package servers

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc's processor times, 1/100 s on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpu returns the processor time that a process has used, in user and kernel mode, in steps of a tick.
func cpu(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return cpuOf(string(b))
}

// cpuOf reads fields 14 and 15 of a line of /proc/PID/stat (proc(5)). The second field, a name in parentheses, may
// hold anything.
func cpuOf(stat string) (time.Duration, error) {
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) < 13 {
		return 0, fmt.Errorf("process status is %q; accepted: a line of /proc/PID/stat", stat)
	}
	user, err := strconv.ParseInt(f[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * tick, err
}
