//! The shared key of a cluster, and signatures with it.

use std::fs::File;
use std::io::{self, Read as _};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The number of bytes of a random key and of a nonce.
pub const BYTES: usize = 32;

/// A secret that all processes of a cluster know.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

/// A signature: HMAC with SHA-256.
pub type Signature = [u8; 32];

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// A key of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Key {
        Key(bytes.into())
    }

    /// A new random key.
    pub fn random() -> io::Result<Key> {
        Ok(Key(random()?.to_vec()))
    }

    /// The key as hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses a key from hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Key> {
        let digits = text.as_bytes();
        if digits.is_empty() || !digits.len().is_multiple_of(2) || !text.is_ascii() {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
        (0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>().map(Key)
    }

    /// The signature of all `parts` together. Each part is preceded by its length, so that no two
    /// lists of parts have the same signature.
    pub fn sign(&self, parts: &[&[u8]]) -> Signature {
        let mut mac = self.mac();
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// Whether `signature` is that of `parts`. Takes the same time for every wrong signature.
    pub fn verifies(&self, parts: &[&[u8]], signature: &[u8]) -> bool {
        let mut mac = self.mac();
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.verify_slice(signature).is_ok()
    }

    fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.0).expect("HMAC takes keys of any size")
    }
}

/// Random bytes of the operating system.
pub fn random() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_hmac_sha_256() {
        // RFC 4231, test case 2, with the length of the only part in front as we have it. The MAC
        // itself is compared with the RFC.
        let mut mac = Key::new("Jefe").mac();
        mac.update(b"what do ya want for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        assert_eq!(Key::new(bytes).to_hex(), expected);
    }

    #[test]
    fn a_signature_is_of_one_list_of_parts() {
        let key = Key::new("k");
        let signature = key.sign(&[b"ab", b"c"]);
        assert!(key.verifies(&[b"ab", b"c"], &signature));
        assert!(!key.verifies(&[b"a", b"bc"], &signature));
        assert!(!key.verifies(&[b"abc"], &signature));
        assert!(!key.verifies(&[b"ab", b"c"], &signature[..16]));
        assert!(!Key::new("l").verifies(&[b"ab", b"c"], &signature));
    }

    #[test]
    fn keys_are_written_as_digits() {
        let key = Key::random().expect("the system has random bytes");
        assert_eq!(Key::from_hex(&key.to_hex()), Some(key));
        for wrong in ["", "1", "0g", "äö"] {
            assert_eq!(Key::from_hex(wrong), None);
        }
    }
}
