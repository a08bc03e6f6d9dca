package weir

// Name returns the name that the limiter's state is under (WithName), or "" if it has none.
func (l *Limiter) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}
