package resp

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A request is what the weir commands ask.
type request struct {
	bound *store.Bound
	key   string
	name  []byte
	cost  int64
	at    int64 // nanoseconds since 1970, or store.OwnClock
	end   int64 // nanoseconds since 1970
	id    int64 // of a reservation
	life  int64 // nanoseconds
	given option

	onError store.OnError

	atText, endText, lifeText []byte // what is read when it is known in which unit
}

// An option is one, or a set, of the words after a limit.
type option uint16

const (
	costOption option = 1 << iota
	atOption
	nameOption
	endOption
	nsOption
	timeOption
	debtOption
	idOption
	lifeOption
	lateOption
	andOption
	onErrorOption
)

var optionWords = [...]string{"COST n", "AT time", "NAME name", "END time", "NS", "TIME", "DEBT", "ID id", "LIFE time", "LATE", "AND key limit ...", "ONERROR deny|allow|local"}

func (o option) accepted() string {
	var words []string
	for i, word := range optionWords {
		if o&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(append(words, "each once"), ", ")
}

// options reads the words after a limit, and returns what comes after AND, or nil if that is not there.
func (c *conn) options(r *request, args [][]byte, accepts option) (rest [][]byte, ok bool) {
	for len(args) > 0 {
		o, hasValue := c.option(args[0])
		switch {
		case o&accepts == 0 || o&r.given != 0:
			c.fail("ERR syntax error at " + excerpt(args[0]) + "; accepted: " + accepts.accepted())
			return nil, false
		case o == andOption:
			return args[1:], true
		case !hasValue:
			r.given |= o
			args = args[1:]
			continue
		case len(args) == 1:
			c.fail("ERR syntax error: " + excerpt(args[0]) + " needs a value")
			return nil, false
		}
		if !c.value(r, o, args[1]) {
			return nil, false
		}
		r.given |= o
		args = args[2:]
	}
	return nil, true
}

func (c *conn) option(word []byte) (o option, hasValue bool) {
	switch string(c.upper(word)) {
	case "COST":
		return costOption, true
	case "AT":
		return atOption, true
	case "NAME":
		return nameOption, true
	case "END":
		return endOption, true
	case "NS":
		return nsOption, false
	case "TIME":
		return timeOption, false
	case "DEBT":
		return debtOption, false
	case "ID":
		return idOption, true
	case "LIFE":
		return lifeOption, true
	case "LATE":
		return lateOption, false
	case "AND":
		return andOption, false
	case "ONERROR":
		return onErrorOption, true
	}
	return 0, false
}

func (c *conn) value(r *request, o option, value []byte) (ok bool) {
	switch o {
	case costOption:
		r.cost, ok = c.number("COST", value, 0)
		return ok
	case atOption:
		r.atText = value
	case endOption:
		r.endText = value
	case idOption:
		r.id, ok = c.identity(value)
		return ok
	case lifeOption:
		r.lifeText = value
	case onErrorOption:
		var err error
		if r.onError, err = store.ParseOnError(string(value)); err != nil {
			c.fail("ERR ONERROR is " + excerpt(value) + "; accepted: " + store.OnErrorAccepted)
		}
		return err == nil
	default:
		r.name = value
		if most := c.server.options.MaxKey; len(value) > most {
			c.fail("ERR NAME is " + strconv.Itoa(len(value)) + " bytes long; accepted: at most " + strconv.Itoa(most))
			return false
		}
	}
	return true
}

// timeOf reads the times, when the unit is known.
func (c *conn) timeOf(r *request) (ok bool) {
	unit := r.form().unit()
	if r.given&atOption != 0 {
		if r.at, ok = c.time(r.atText, unit); !ok {
			return false
		}
	}
	if r.given&endOption != 0 {
		if r.end, ok = c.endTime(r.endText, unit); !ok {
			return false
		}
	}
	if r.given&lifeOption != 0 {
		if r.life, ok = c.lifetime(r.lifeText, unit); !ok {
			return false
		}
	}
	return true
}

// time reads the argument of AT, in units since 1970, if clients may say what time it is. It returns nanoseconds.
func (c *conn) time(arg []byte, unit time.Duration) (at int64, ok bool) {
	if !c.server.options.TrustClientTime {
		c.fail("ERR AT is refused: this server does not trust the time of its clients (weir serve --trust-client-time does)")
		return 0, false
	}
	n, ok := c.numberIn("AT", arg, reach(unit))
	if !ok {
		return 0, false
	}
	perSecond := int64(time.Second / unit)
	at, ok = store.Nanoseconds(time.Unix(n/perSecond, n%perSecond*int64(unit)))
	if !ok {
		c.failWith(store.ErrTime)
	}
	return at, ok
}

// latestEnd is the latest time at which a key can be fresh again, in nanoseconds: limits reach 73 years beyond the last time.
const latestEnd = algorithm.MaxTime + 1<<61

// endTime reads the argument of END, and returns nanoseconds.
func (c *conn) endTime(arg []byte, unit time.Duration) (end int64, ok bool) {
	most := latestEnd / int64(unit)
	n, ok := c.numberIn("END", arg, span{-most, most})
	return n * int64(unit), ok
}

// mostLife is the longest life of a reservation.
const mostLife = 10 * 365 * 24 * time.Hour

// lifetime reads the argument of LIFE, and returns nanoseconds.
func (c *conn) lifetime(arg []byte, unit time.Duration) (life int64, ok bool) {
	n, ok := c.numberIn("LIFE", arg, span{int64(time.Microsecond / unit), int64(mostLife / unit)})
	return n * int64(unit), ok
}

// identity reads the argument of ID.
func (c *conn) identity(arg []byte) (id int64, ok bool) {
	id, ok = parseInt(arg)
	if !ok || id == 0 {
		c.fail("ERR ID is " + excerpt(arg) + "; accepted: a whole number of 64 bits, other than 0")
		return 0, false
	}
	return id, true
}
