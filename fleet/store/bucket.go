package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket holds the objects of a store. The cause of an error is fs.ErrNotExist if there is no
// such object.
type bucket interface {
	// put writes an object, durably. If once is set and the object exists, it returns ErrExists.
	put(ctx context.Context, name string, once bool, data []byte) error
	read(ctx context.Context, name string) ([]byte, error)
	// list returns the objects whose names begin with prefix, which is empty or ends with '/',
	// sorted by name.
	list(ctx context.Context, prefix string) ([]Object, error)
	delete(ctx context.Context, name string) error
}

// directory is a bucket of files. A file that is being written has a name that begins with a dot.
type directory string

func (d directory) path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

func (d directory) put(_ context.Context, name string, once bool, data []byte) error {
	to := d.path(name)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	// In the same directory, so that it can be renamed.
	f, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := cmp.Or(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if once {
		err = os.Link(f.Name(), to)
	} else {
		err = os.Rename(f.Name(), to)
	}
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	for dir := filepath.Dir(to); err == nil; dir = filepath.Dir(dir) {
		if err = SyncPath(dir); dir == string(d) {
			break
		}
	}
	return err
}

func (d directory) read(_ context.Context, name string) ([]byte, error) {
	return os.ReadFile(d.path(name))
}

func (d directory) list(_ context.Context, prefix string) (list []Object, err error) {
	err = d.walk(prefix, func(name string, info fs.FileInfo) error {
		if !strings.HasPrefix(info.Name(), ".") {
			list = append(list, Object{name, info.Size(), info.ModTime()})
		}
		return nil
	})
	slices.SortFunc(list, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// walk calls do with each file below a prefix. It leaves out what is deleted meanwhile.
func (d directory) walk(prefix string, do func(name string, info fs.FileInfo) error) error {
	return filepath.WalkDir(d.path(prefix), func(p string, e fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil && !e.IsDir() {
			info, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(string(d), p)
		if err != nil {
			return err
		}
		return do(filepath.ToSlash(name), info)
	})
}

// delete deletes a file, and the directories that are then empty.
func (d directory) delete(_ context.Context, name string) error {
	path := d.path(name)
	err := os.Remove(path)
	for dir := filepath.Dir(path); err == nil && dir != string(d) && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
	}
	return err
}

// clean deletes the partial files of processes that were killed while writing.
func (d directory) clean() error {
	return d.walk("", func(name string, info fs.FileInfo) error {
		if !strings.HasPrefix(info.Name(), ".") || time.Since(info.ModTime()) < time.Hour {
			return nil
		}
		if err := os.Remove(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// s3 is a bucket of a server that speaks the protocol of Amazon S3. The client repeats requests
// that fail.
type s3 struct {
	client *minio.Client
	bucket string
}

// openS3 returns the bucket with a URL such as s3://fleet?region=eu-west-1. The access key is that of
// the environment, of ~/.aws/credentials, or of the role of this machine.
func openS3(ctx context.Context, where string) (*s3, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "s3" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("expected a directory, or s3://BUCKET?region=REGION&endpoint=URL")
	}
	q := u.Query()
	for name := range q {
		if name != "region" && name != "endpoint" {
			return nil, fmt.Errorf("%q: expected region or endpoint", name)
		}
	}
	server := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	if e := q.Get("endpoint"); e != "" {
		if server, err = url.Parse(e); err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" {
			return nil, fmt.Errorf("endpoint %q: expected a URL such as https://minio.example:9000", e)
		}
	}
	keys := credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}}})
	c, err := minio.New(server.Host, &minio.Options{Creds: keys, Secure: server.Scheme == "https", Region: cmp.Or(q.Get("region"), os.Getenv("AWS_REGION"))})
	if err != nil {
		return nil, err
	}
	ok, err := c.BucketExists(ctx, u.Host)
	if err == nil && !ok {
		err = errors.New("the server has no such bucket")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBucket, err)
	}
	return &s3{c, u.Host}, nil
}

// ErrBucket is the cause of the error of Open if a server cannot be reached, or refuses the bucket.
var ErrBucket = errors.New("the bucket cannot be used")

// missing adds the cause fs.ErrNotExist to the error of a server that has no such object.
func missing(err error) error {
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

func (b *s3) put(ctx context.Context, name string, once bool, data []byte) error {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: once}
	if once {
		o.SetMatchETagExcept("*")
	}
	_, err := b.client.PutObject(ctx, b.bucket, name, bytes.NewReader(data), int64(len(data)), o)
	if once && minio.ToErrorResponse(err).Code == minio.PreconditionFailed {
		return ErrExists
	}
	return err
}

func (b *s3) read(ctx context.Context, name string) (data []byte, err error) {
	// The client repeats requests, but not those whose answer ends early.
	for range 3 {
		var o *minio.Object
		if o, err = b.client.GetObject(ctx, b.bucket, name, minio.GetObjectOptions{}); err == nil {
			data, err = io.ReadAll(o)
			o.Close()
		}
		if err = missing(err); err == nil || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			break
		}
	}
	return data, err
}

func (b *s3) list(ctx context.Context, prefix string) (list []Object, err error) {
	for o := range b.client.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, o.Err
		}
		list = append(list, Object{o.Key, o.Size, o.LastModified})
	}
	return list, nil
}

func (b *s3) delete(ctx context.Context, name string) error {
	return missing(b.client.RemoveObject(ctx, b.bucket, name, minio.RemoveObjectOptions{}))
}
