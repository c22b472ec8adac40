package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	file := strings.TrimSpace(versionFile)
	stamps := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789ab"}, {Key: "vcs.time", Value: "2026-11-26T10:00:00Z"}}
	for name, c := range map[string]struct {
		info          debug.BuildInfo
		version, date string
	}{
		"go install of a release": {debug.BuildInfo{Main: debug.Module{Version: "v1.2.3", Sum: "h1:1"}}, "1.2.3", ""},
		"go install of a commit":  {debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261126100000-0123456789ab", Sum: "h1:1"}}, "1.2.4-0.20261126100000-0123456789ab", ""},
		"go build in a clone":     {debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261126100000-0123456789ab+dirty"}, Settings: stamps}, file, "2026-11-26T10:00:00Z"},
		"go run in a tarball":     {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, file, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if version, date := identify(&c.info); version != c.version || date != c.date {
				t.Errorf("got %q, %q, want %q, %q", version, date, c.version, c.date)
			}
		})
	}
}
