//! The folder of proving keys, and the keys in memory.
//!
//! A key is made once for a circuit in a size and kept as `DIR/mimc-2^12.key`. Whoever makes it holds the lock
//! `DIR/mimc-2^12.lock` meanwhile (`flock`, so a killed process holds nothing), and the file appears whole under its
//! name: reading needs no lock. A file that is damaged is reported and left alone, since it may be the only copy of a
//! key that verifiers out there rely on.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sexton_groth16::{KeyError, KeyHeader, KeyKind, ProvingKey, SetupError, Shape, setup};
use sexton_model::pipeline::Allocation;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder, or a lock in it, cannot be used.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The key's file cannot be read or written.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The setup failed.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// What a store does that takes time, as it happens.
#[derive(Debug)]
pub enum Notice {
    /// Another process makes this key; we wait for it.
    Waiting(Shape),
    /// A development key is being made.
    SettingUp(Shape),
    /// A key was made and written.
    SetUp(Shape, Duration),
    /// A key was read.
    Loaded(Shape, Duration),
}

/// A key in memory.
#[derive(Debug)]
pub struct LoadedKey {
    /// The key.
    pub key: ProvingKey,
    /// Which key it is: SHA-256 of its points in hexadecimal, as in the header of its file.
    pub key_id: String,
    /// Size of its file in bytes; its size in memory is about the same.
    pub bytes: u64,
}

impl LoadedKey {
    /// True when it was made without a ceremony.
    #[must_use]
    pub fn is_development(&self) -> bool {
        self.key.kind() == KeyKind::Development
    }

    /// Reads the key file at `path`, and insists on its shape.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn read(path: &Path, shape: Shape) -> Result<Self, KeyError> {
        let key = ProvingKey::load_for(path, shape)?;
        Ok(Self::new(key, &KeyHeader::read(path)?))
    }

    fn new(key: ProvingKey, header: &KeyHeader) -> Self {
        let bytes = header.payload_bytes + sexton_groth16::key::HEADER_BYTES as u64;
        Self { key, key_id: hex::encode(header.payload_sha256), bytes }
    }
}

/// The folder, and the keys that were read from it. Shared by all workers.
pub struct KeyStore {
    folder: PathBuf,
    notify: Box<dyn Fn(Notice) + Send + Sync>,
    places: Mutex<BTreeMap<Shape, Arc<Place>>>,
}

/// Where one key will be. Whoever reads or makes it holds `busy`; everybody else looks at `key` without a lock.
struct Place {
    key: OnceLock<Arc<LoadedKey>>,
    busy: Mutex<()>,
    last_used: Mutex<Instant>,
}

impl KeyStore {
    /// A store over `folder`, which is made when the first key is. `notify` is told of what takes time.
    #[must_use]
    pub fn new(folder: PathBuf, notify: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self { folder, notify: Box::new(notify), places: Mutex::default() }
    }

    /// The key for `shape`: from memory, from the folder, or made now. A waiter for one key never holds up another key.
    ///
    /// # Errors
    /// [`StoreError`]; the next call tries again.
    pub fn get(&self, shape: Shape) -> Result<Arc<LoadedKey>, StoreError> {
        self.obtain(shape, || self.load_or_make(shape))
    }

    /// As [`get`](Self::get), but no key is made. `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn find(&self, shape: Shape) -> Result<Option<Arc<LoadedKey>>, StoreError> {
        if !self.path(shape).exists() {
            return Ok(None);
        }
        self.obtain(shape, || self.load(shape)).map(Some)
    }

    /// Where the key for `shape` is kept.
    #[must_use]
    pub fn path(&self, shape: Shape) -> PathBuf {
        self.folder.join(format!("{shape}.key"))
    }

    /// The keys in memory.
    #[must_use]
    pub fn loaded(&self) -> Vec<Arc<LoadedKey>> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.values().filter_map(|place| place.key.get().cloned()).collect()
    }

    /// The keys in memory, for `/status`.
    #[must_use]
    pub fn allocations(&self) -> Vec<Allocation> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let allocation = |place: &Arc<Place>| {
            let key = place.key.get()?;
            let last_used = *place.last_used.lock().unwrap_or_else(PoisonError::into_inner);
            Some(Allocation {
                circuit_id: key.key.shape().to_string(),
                bytes: key.bytes,
                last_used_secs_ago: last_used.elapsed().as_secs_f64(),
                evictable: false,
            })
        };
        places.values().filter_map(allocation).collect()
    }

    fn obtain(
        &self,
        shape: Shape,
        read: impl FnOnce() -> Result<LoadedKey, StoreError>,
    ) -> Result<Arc<LoadedKey>, StoreError> {
        let place = self.place(shape);
        let _busy = match place.key.get() {
            Some(_) => None,
            None => Some(place.busy.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        let key = match place.key.get() {
            Some(key) => Arc::clone(key),
            None => {
                let key = Arc::new(read()?);
                Arc::clone(place.key.get_or_init(|| key))
            }
        };
        *place.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(key)
    }

    fn place(&self, shape: Shape) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.entry(shape).or_insert_with(|| {
            Arc::new(Place {
                key: OnceLock::new(),
                busy: Mutex::new(()),
                last_used: Mutex::new(Instant::now()),
            })
        });
        Arc::clone(place)
    }

    fn load(&self, shape: Shape) -> Result<LoadedKey, StoreError> {
        let start = Instant::now();
        let key = LoadedKey::read(&self.path(shape), shape)?;
        (self.notify)(Notice::Loaded(shape, start.elapsed()));
        Ok(key)
    }

    fn load_or_make(&self, shape: Shape) -> Result<LoadedKey, StoreError> {
        let path = self.path(shape);
        if path.exists() {
            return self.load(shape);
        }
        let _lock = self.lock(shape)?;
        // Whoever held the lock before us may have made it.
        if path.exists() {
            return self.load(shape);
        }
        (self.notify)(Notice::SettingUp(shape));
        let start = Instant::now();
        let key = setup(shape)?;
        let header = key.save(&path)?;
        (self.notify)(Notice::SetUp(shape, start.elapsed()));
        Ok(LoadedKey::new(key, &header))
    }

    /// Takes the lock of one key, which lasts as long as the file is open.
    fn lock(&self, shape: Shape) -> Result<File, StoreError> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|source| StoreError::Io { action: "create folder", path: self.folder.clone(), source })?;
        let path = self.folder.join(format!("{shape}.lock"));
        let failed = |action| {
            let path = path.clone();
            move |source| StoreError::Io { action, path, source }
        };
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(failed("open lock"))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => (self.notify)(Notice::Waiting(shape)),
            Err(TryLockError::Error(source)) => return Err(failed("take lock")(source)),
        }
        file.lock().map_err(failed("take lock"))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn store(folder: &Path) -> (Arc<KeyStore>, Arc<AtomicUsize>) {
        let setups = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&setups);
        let store = KeyStore::new(folder.to_owned(), move |notice| {
            if matches!(notice, Notice::SettingUp(_)) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        (Arc::new(store), setups)
    }

    #[test]
    fn workers_that_want_one_key_make_it_once_and_the_next_process_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape::mimc(4).unwrap();
        let (first, setups) = store(&folder.path().join("keys"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| first.get(shape).unwrap());
            }
        });
        let (second, setups_of_second) = store(&folder.path().join("keys"));
        assert_eq!(second.get(shape).unwrap().key_id, first.get(shape).unwrap().key_id);
        assert_eq!((setups.load(Ordering::Relaxed), setups_of_second.load(Ordering::Relaxed)), (1, 0));
        assert_eq!(second.allocations()[0].circuit_id, "mimc-2^4");
    }

    #[test]
    fn a_damaged_key_is_refused_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape::mimc(4).unwrap();
        let (first, _) = store(folder.path());
        first.get(shape).unwrap();
        let path = first.path(shape);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();

        let (second, setups) = store(folder.path());
        let error = second.get(shape).unwrap_err().to_string();
        assert!(error.contains("mimc-2^4.key") && error.contains("damaged"), "{error}");
        assert_eq!((std::fs::read(&path).unwrap(), setups.load(Ordering::Relaxed)), (bytes, 0));
        assert!(second.loaded().is_empty());
    }

    #[test]
    fn finding_makes_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = store(&folder.path().join("keys"));
        assert!(store.find(Shape::mimc(4).unwrap()).unwrap().is_none());
        assert!(!folder.path().join("keys").exists());
    }
}
