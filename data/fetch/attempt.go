package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// defaultClient waits for a connection and for headers, but as long as it takes for a body.
func defaultClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		ForceAttemptHTTP2:     true,
	}}
}

// slowDown is an answer that asks to wait.
type slowDown struct {
	status string
	wait   time.Duration
}

func (s *slowDown) Error() string { return "the server answers " + s.status }

// attempt fetches what is missing of the part; nil when it is complete.
func (d *download) attempt(ctx context.Context) error {
	have := d.size()
	if have > 0 && (d.state.URL != d.URL || d.state.validator() == "" && d.SHA256 == "") {
		// Nothing says that these bytes belong to the file as it is now, and nothing would tell in the end.
		if err := d.restart(); err != nil {
			return err
		}
		have = 0
	}
	if have > 0 && d.state.Size == have {
		return nil // only the check is missing
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return fatal{err}
	}
	request.Header.Set("User-Agent", "chiplm")
	request.Header.Set("Accept-Encoding", "identity")
	if have > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if v := d.state.validator(); v != "" {
			request.Header.Set("If-Range", v)
		}
	}
	linked := &linkedHeaders{}
	client := *d.Client
	client.CheckRedirect = linked.follow
	response, err := client.Do(request)
	if err != nil {
		return explain(err, hostOf(d.URL))
	}
	defer response.Body.Close()
	linked.see(response)
	switch response.StatusCode {
	case http.StatusPartialContent:
		if err := d.continues(response, have); err != nil {
			return err
		}
	case http.StatusOK:
		if have > 0 {
			d.Note("starting over: the server cannot go on from there")
		}
		if err := d.begin(response, linked); err != nil {
			return err
		}
	case http.StatusRequestedRangeNotSatisfiable:
		if err := d.restart(); err != nil {
			return err
		}
		return errors.New("the server lacks the rest, so the start was thrown away")
	default:
		return refusal(response)
	}
	return d.copy(ctx, cancel, response.Body)
}

// announced asks the server for the SHA-256 of the file without fetching it; empty when it cannot be had.
func (d *download) announced(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, d.URL, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("User-Agent", "chiplm")
	linked := &linkedHeaders{}
	client := *d.Client
	client.CheckRedirect = linked.follow
	response, err := client.Do(request)
	if err != nil {
		return linked.sha256, ctx.Err() // whoever is offline is told that no hash is known
	}
	response.Body.Close()
	linked.see(response)
	return linked.sha256, nil
}

// refusal is the error of an answer without the file.
func refusal(response *http.Response) error {
	code, status := response.StatusCode, response.Status
	switch {
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return &slowDown{status, time.Duration(min(max(seconds, 0), 600)) * time.Second}
	case code == http.StatusNotFound || code == http.StatusGone:
		return fatal{fmt.Errorf("the server answers %s: check --variant, --split, --revision and --base-url", status)}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fatal{fmt.Errorf("the server answers %s: it does not give this file to everybody; try another --base-url",
			status)}
	}
	return fatal{fmt.Errorf("the server answers %s, which is not understood: try another --base-url", status)}
}

// restart throws away what has arrived.
func (d *download) restart() error {
	d.state = state{}
	os.Remove(stateName(d.part))
	if err := d.out.Truncate(0); err != nil {
		return fatal{err}
	}
	return nil
}

// begin starts the file from an answer that holds all of it.
func (d *download) begin(response *http.Response, linked *linkedHeaders) error {
	if err := d.restart(); err != nil {
		return err
	}
	size := response.ContentLength
	if linked.size > 0 && size >= 0 && size != linked.size {
		return fatal{fmt.Errorf("the server sends %d bytes and announces a file of %d: try another --base-url", size,
			linked.size)}
	}
	if size < 0 {
		size = linked.size
	}
	if d.Bytes > 0 && size > 0 && size != d.Bytes {
		return fatal{fmt.Errorf("the server has a file of %d bytes where %d are expected: it is another version; check "+
			"--revision and --base-url", size, d.Bytes)}
	}
	if d.SHA256 != "" && linked.sha256 != "" && linked.sha256 != d.SHA256 {
		return fatal{fmt.Errorf("the server announces a file with SHA-256 %s where %s is expected: it is another version; "+
			"check --revision and --base-url", linked.sha256, d.SHA256)}
	}
	if size <= 0 {
		size = d.Bytes
	}
	d.state = state{URL: d.URL, LastModified: response.Header.Get("Last-Modified"), Size: size, SHA256: linked.sha256}
	if tag := response.Header.Get("ETag"); !strings.HasPrefix(tag, "W/") {
		d.state.ETag = tag
	}
	if err := d.state.write(d.part); err != nil {
		return err
	}
	_, err := d.out.Seek(0, io.SeekStart)
	return err
}

// continues checks that an answer goes on exactly where the part ends.
func (d *download) continues(response *http.Response, have int64) error {
	var first, last, total int64
	if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &total); err != nil ||
		have == 0 || first != have || d.state.Size > 0 && total != d.state.Size {
		if err := d.restart(); err != nil {
			return err
		}
		return fmt.Errorf("the server sends the wrong range, %.40q, so it starts over",
			response.Header.Get("Content-Range"))
	}
	d.state.Size = total
	_, err := d.out.Seek(have, io.SeekStart)
	return err
}

// copy appends the body to the part. It gives up when no byte comes for too long.
func (d *download) copy(ctx context.Context, cancel context.CancelCauseFunc, body io.Reader) error {
	stalled := fmt.Errorf("no byte came for %v", d.Stall)
	timer := time.AfterFunc(d.Stall, func() { cancel(stalled) })
	defer timer.Stop()
	total := d.state.Size
	if total == 0 {
		total = -1
	}
	done := d.size()
	d.Progress(done, total)
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		timer.Reset(d.Stall)
		if _, err := d.out.Write(buf[:n]); err != nil {
			return err
		}
		done += int64(n)
		if total >= 0 && done > total {
			if err := d.restart(); err != nil {
				return err
			}
			return fmt.Errorf("the server sends more than the %d bytes of the file, so they were thrown away", total)
		}
		if n > 0 {
			d.Progress(done, total)
		}
		if err == io.EOF {
			if total >= 0 && done < total {
				return fmt.Errorf("the connection ended after %d of %d bytes", done, total)
			}
			return nil
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("the connection broke after %d bytes: %w", done, innermost(err))
		}
	}
}

// linkedHeaders are what the Hugging Face hub says of a large file, in its own answer or in the one that sends the
// client on to where the bytes are: its SHA-256 as the entity tag, and its size.
type linkedHeaders struct {
	sha256 string
	size   int64
}

// follow is the client's rule for redirects.
func (l *linkedHeaders) follow(request *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("the server sends the client round in circles")
	}
	if request.Response != nil {
		l.see(request.Response)
	}
	return nil
}

func (l *linkedHeaders) see(response *http.Response) {
	if tag := strings.Trim(response.Header.Get("X-Linked-Etag"), `"`); len(tag) == 64 && l.sha256 == "" &&
		strings.Trim(strings.ToLower(tag), "0123456789abcdef") == "" {
		l.sha256 = strings.ToLower(tag)
	}
	if n, err := strconv.ParseInt(response.Header.Get("X-Linked-Size"), 10, 64); err == nil && n > 0 && l.size == 0 {
		l.size = n
	}
}
