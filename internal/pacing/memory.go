package pacing

import "time"

// mostServers is how many are kept of those to which nothing is under way.
const mostServers = 4096

// at returns the server of the name, which it makes if there is none.
func (s *Servers) at(name string) *server {
	v := s.all[name]
	if v == nil {
		s.makeRoom()
		v = &server{sent: s.sent, longest: MostPause}
		if s.all == nil {
			s.all = map[string]*server{}
		}
		s.all[name] = v
	}
	return v
}

// tidy forgets a server of which nothing is to be remembered, not even that one request is to go before the others.
func (s *Servers) tidy(t *Ticket) {
	if v := t.server; s.all[t.name] == v && v.idle(time.Now()) && v.back.window != 1 {
		delete(s.all, t.name)
	}
}

// makeRoom forgets, when there are too many, the servers that hold nobody back; if that is not enough, others to which nothing is under way.
func (s *Servers) makeRoom() {
	if len(s.all) < max(s.most, mostServers) {
		return
	}
	now := time.Now()
	for name, v := range s.all {
		if v.idle(now) {
			delete(s.all, name)
		}
	}
	for name, v := range s.all {
		if len(s.all) < mostServers*7/8 {
			break
		}
		if len(v.flights) == 0 && len(v.waiters) == 0 {
			delete(s.all, name)
		}
	}
	s.most = 2 * len(s.all)
}
