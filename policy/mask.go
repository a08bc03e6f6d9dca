package policy

import (
	"slices"
	"strings"

	"github.com/weirlimit/weir/identity"
)

// MaskedKey returns Key for replies and logs: values of headers, parameters, cookies and
// attributes, which may be secrets, are masked as [identity.Mask] does; addresses, methods, hosts
// and paths stay.
func (d *LimitDecision) MaskedKey() string {
	if d.rule == nil {
		return identity.MaskPart(d.Key)
	}
	return d.rule.key.mask(d.Key)
}

// mask masks the parts of a key.
func (m keyMaker) mask(key string) string {
	if len(m) == 0 {
		return key
	}
	parts := strings.Split(key, ",") // none has a comma inside
	for i, p := range parts {
		if i < len(m) {
			parts[i] = m[i].mask(p)
		}
	}
	return strings.Join(parts, ",")
}

// mask masks one part of a key, if its source names the client.
func (p keyPart) mask(text string) string {
	if len(p) == 1 {
		return p[0].mask(text)
	}
	for i := range p {
		if value, is := strings.CutPrefix(text, p[i].text+"="); is {
			return p[i].text + "=" + p[i].mask(value)
		}
	}
	return text // none of the alternatives is there
}

func (s *keySource) mask(text string) string {
	if !s.names() {
		return text
	}
	return identity.MaskPart(text)
}

// names reports whether the value is a name of the client, and not a property of its request.
func (s *keySource) names() bool { return s.of.kind != "" || s.hash }

// identifies reports whether a policy distinguishes clients by the source, or the source is a
// header that holds credentials.
func (v *rules) identifies(s source) bool {
	if s.kind == header && holdsCredentials(s.name) {
		return true
	}
	return slices.ContainsFunc(v.rules, func(r rule) bool {
		return slices.ContainsFunc(append([]keyPart{r.client}, r.key...), func(part keyPart) bool {
			return slices.ContainsFunc(part, func(k keySource) bool { return k.of == s })
		})
	})
}

// MaskClient returns a client's name for replies and logs. A name with a source keeps the source,
// and an address; all further values are masked as [identity.Mask] does. A hashed value has the
// digits of its secret.
func MaskClient(name string) string {
	source, value, ok := strings.Cut(name, "=")
	if !ok {
		return identity.Mask(name)
	}
	switch s, ok := parseKeySource(source); {
	case !ok:
		return identity.Mask(name)
	case s.hash:
		return source + "=" + identity.MaskPart(value)
	case s.names():
		return source + "=" + identity.Mask(value)
	case s.v6 != 0:
		if _, err := parsePrefix(value); err != nil {
			return source + "=" + identity.Mask(value)
		}
	}
	return name
}
