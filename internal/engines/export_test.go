package engines

import "time"

// SetProbeTime sets how long a probe waits for a server.
func SetProbeTime(d time.Duration) { probeTime = d }
