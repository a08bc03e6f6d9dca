package httpapi

// Routes lists what the server answers to, as "METHOD path".
func (s *Server) Routes() []string {
	var list []string
	for path, r := range s.routes {
		list = append(list, r.method+" "+path)
	}
	return list
}
