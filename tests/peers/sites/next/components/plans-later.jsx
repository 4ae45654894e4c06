'use client';
import dynamic from 'next/dynamic';

export default dynamic(() => import('./plans.jsx'), { ssr: false, loading: () => <div className="wait" /> });
