package weir

type lines struct{}
