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
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// Etcd is one etcd server, which can hold the data of many targets.
type Etcd struct {
	*Server
	url string
	dir string
}

// StartEtcd starts an etcd without fsync: its data survives a kill, but not a power cut.
func StartEtcd(ctx context.Context, opts Options, name string) (*Etcd, error) {
	dir, err := opts.dataDir(name)
	if err != nil {
		return nil, err
	}
	e := &Etcd{dir: dir}
	e.Server, err = startServer(ctx, opts, name, 2, func(ports []int) (launch, error) {
		peer := "http://" + address(ports[1])
		e.url = "http://" + address(ports[0])
		ready, err := all(probe{&rest.Config{Host: e.url}, "/health"})
		return launch{program: "etcd", ready: ready, args: []string{
			"--data-dir=" + dir,
			"--listen-client-urls=" + e.url,
			"--advertise-client-urls=" + e.url,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			"--unsafe-no-fsync",
		}}, err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// SetFull raises or clears the alarm with which etcd refuses writes when its database has no space left. etcd still answers
// reads and watches.
func (e *Etcd) SetFull(ctx context.Context, full bool) error {
	action := "DEACTIVATE"
	if full {
		action = "ACTIVATE"
	}
	// An alarm belongs to a member, which need not exist.
	body := fmt.Sprintf(`{"action": %q, "alarm": "NOSPACE", "memberID": "1"}`, action)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v3/maintenance/alarm", strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("set the alarm of %s: %w", e.name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("set the alarm of %s: %w", e.name, err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("set the alarm of %s: %w", e.name, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("set the alarm of %s: %s %s", e.name, response.Status, answer)
	}
	return nil
}
