package servers

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"
)

// A result is what one run of redis-benchmark found.
type result struct {
	// perSecond is how many requests were answered in a second.
	perSecond float64
	// cpu is the server's processor seconds for a million requests.
	cpu float64
	// busy is the part of the time that the server's processor worked: below 1 the load was the brake.
	busy float64
}

const connections = 50

// fire sends so many requests for a million random keys, and measures.
func (t *target) fire(ctx context.Context, requests, pipeline int) (result, error) {
	_, port, err := net.SplitHostPort(t.address)
	if err != nil {
		return result{}, err
	}
	args := []string{"-c", loadCore, "redis-benchmark", "-p", port, "-c", strconv.Itoa(connections), "-r", "1000000",
		"-n", strconv.Itoa(requests), "-P", strconv.Itoa(pipeline), "--csv"}
	var problem bytes.Buffer
	cmd := exec.CommandContext(ctx, "taskset", append(args, t.command...)...)
	cmd.Stderr = &problem
	before, err := cpu(t.run.Process.Pid)
	if err != nil {
		return result{}, err
	}
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("%s: redis-benchmark: %w: %s", t.name, err, problem.Bytes())
	}
	after, err := cpu(t.run.Process.Pid)
	if err != nil {
		return result{}, err
	}
	rate, err := perSecond(out)
	used := (after - before).Seconds()
	return result{rate, used / float64(requests) * 1e6, used * rate / float64(requests)}, err
}

// perSecond reads the rate from redis-benchmark's comma-separated output, which may come after warnings.
func perSecond(out []byte) (float64, error) {
	start := bytes.Index(out, []byte(`"test","rps"`))
	if start < 0 {
		return 0, fmt.Errorf("redis-benchmark wrote %q; accepted: its --csv output", out)
	}
	rows, err := csv.NewReader(bytes.NewReader(out[start:])).ReadAll()
	if err != nil || len(rows) < 2 {
		return 0, fmt.Errorf("redis-benchmark wrote %q (%v); accepted: its --csv output", out, err)
	}
	return strconv.ParseFloat(rows[1][1], 64)
}

// calibrate finds how many requests take about d. It tries twice, first with few, and believes the faster: something
// else that runs on the machine makes a try slower, never faster.
func (t *target) calibrate(ctx context.Context, pipeline int, d time.Duration) (int, error) {
	step := connections * pipeline
	requests, best := 100*step, 0.0
	for range 2 {
		r, err := t.fire(ctx, requests, pipeline)
		if err != nil {
			return 0, err
		}
		best = max(best, r.perSecond)
		requests = max(int(best*d.Seconds()/4)/step, 100) * step
	}
	return max(int(best*d.Seconds())/step, 1) * step, nil
}
