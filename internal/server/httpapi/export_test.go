package httpapi

import "slices"

// Routes lists what the server answers to, as "METHOD path".
func (s *Server) Routes() []string {
	var list []string
	for path, r := range s.routes {
		list = append(list, r.method+" "+path)
	}
	return list
}

// Occupy takes the place of the profiles of a path, as a profile under way does.
func (s *Server) Occupy(path string) (leave func()) {
	places := s.profiles.snapshots
	if path == profilesPath+"profile" || path == profilesPath+"trace" {
		places = s.profiles.recordings
	}
	leave, _ = enter(places)
	return leave
}

// Recordings returns how many recordings are under way.
func (s *Server) Recordings() int { return len(s.profiles.recordings) }

// Open lists the paths that need no right.
func (s *Server) Open() (public, anyUser []string) {
	for path, r := range s.routes {
		switch {
		case r.public:
			public = append(public, path)
		case r.anyUser:
			anyUser = append(anyUser, path)
		}
	}
	slices.Sort(public)
	return public, anyUser
}
