/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package servers

import (
	"fmt"
	"os"
	"path/filepath"
)

// Options configure the directories of servers.
type Options struct {
	// Dir holds data, credentials and, in its directory "logs", one log file per server.
	// Two servers of one name must not share a Dir.
	Dir string
	// Bin is the directory of the programs that hack/buildtools builds.
	Bin string
	// Log receives progress messages of one line. It may be nil, and must be safe for concurrent use.
	Log func(string)
	// AsInstalled runs servers with the settings of a normal installation, for benchmarks. Otherwise they use more memory
	// and less CPU time, and their data survives their end, but not a crash of the machine.
	AsInstalled bool
}

func (o Options) logf(format string, args ...any) {
	if o.Log != nil {
		o.Log(fmt.Sprintf(format, args...))
	}
}

// program returns the path of a built program, or an error that explains how to build it.
func (o Options) program(name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(o.Bin, name))
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built, run `go run ./hack/buildtools %s`: %w", name, name, err)
	}
	return path, nil
}

// dataDir returns the absolute path of a directory for one server below Dir, and creates it if needed.
func (o Options) dataDir(elem ...string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(append([]string{o.Dir}, elem...)...))
	if err != nil {
		return "", fmt.Errorf("locate a directory below %s: %w", o.Dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create %s: %w", dir, err)
	}
	return dir, nil
}
