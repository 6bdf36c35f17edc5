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

package baseline

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// ProcessArgument is the argument that runs the program as a baseline syncer.
const ProcessArgument = "bare"

// Process is a running baseline syncer.
type Process struct {
	// Ready holds the time until all lists were complete.
	Ready Response

	command   *exec.Cmd
	requests  io.WriteCloser
	responses *bufio.Reader
}

// Start starts this program as a baseline syncer. It returns when the syncer has listed all mailboxes and targets. The
// process ends with ctx.
func Start(ctx context.Context, plan Config) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	p := &Process{command: exec.CommandContext(ctx, program, ProcessArgument)}
	p.command.Stderr = os.Stderr
	if p.requests, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a bare syncer: %w", err)
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a bare syncer: %w", err)
	}
	p.responses = bufio.NewReader(output)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start a bare syncer: %w", err)
	}
	if p.Ready, err = p.exchange(plan); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Send sends a request and returns its response.
func (p *Process) Send(order Request) (Response, error) { return p.exchange(order) }

func (p *Process) exchange(message any) (answer Response, err error) {
	if err := json.NewEncoder(p.requests).Encode(message); err != nil {
		return answer, fmt.Errorf("send a request to the bare syncer: %w", err)
	}
	line, err := p.responses.ReadBytes('\n')
	if err != nil {
		return answer, fmt.Errorf("hear from the bare syncer: %w", err)
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return answer, fmt.Errorf("understand the bare syncer: %w", err)
	}
	if answer.Error != "" {
		return answer, fmt.Errorf("the bare syncer: %s", answer.Error)
	}
	return answer, nil
}

// Stop stops the process.
func (p *Process) Stop() error {
	if err := p.requests.Close(); err != nil {
		return fmt.Errorf("stop the bare syncer: %w", err)
	}
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("stop the bare syncer: %w", err)
	}
	return nil
}
